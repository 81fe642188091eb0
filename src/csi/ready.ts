// Waits for a driver to be up: it is asked every second until it says that it is.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { CsiDriver } from './driver.ts'
import { CsiError, isUnimplemented } from './errors.ts'

const PROBE_EVERY_MS = 1_000
const REMIND_EVERY = 30 // probes: someone watching the log sees what is being waited for

export interface ReadyOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Settles once the driver is ready; rejects with the signal's reason when that fires first. */
export async function waitUntilReady(driver: CsiDriver, { clock, log, signal }: ReadyOptions): Promise<void> {
  for (let probes = 0; ; probes++) {
    const because = await whyNotReady(driver, signal)
    if (because === undefined) return
    if (probes % REMIND_EVERY === 0) log.info({ because }, 'waiting for the CSI driver to be ready')
    await clock.sleep(PROBE_EVERY_MS, signal)
  }
}

async function whyNotReady(driver: CsiDriver, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { ready } = await driver.identity.probe({}, { signal })
    return ready === false ? 'the driver says that it is still starting' : undefined // saying nothing means ready
  } catch (error) {
    signal.throwIfAborted()
    if (isUnimplemented(error)) return undefined // it has nothing to start
    if (error instanceof CsiError) return error.message
    throw error
  }
}
