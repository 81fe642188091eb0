// Waits until a driver is ready, by calling Probe every second.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { CsiDriver } from './driver.ts'
import { CsiError, isUnimplemented } from './errors.ts'

const PROBE_EVERY_MS = 1_000
const LOG_EVERY_PROBES = 30

export interface ReadyOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Resolves once the driver is ready, or rejects with the signal's reason. */
export async function waitUntilReady(driver: CsiDriver, { clock, log, signal }: ReadyOptions): Promise<void> {
  for (let probes = 0; ; probes++) {
    const because = await whyNotReady(driver, signal)
    if (because === undefined) return
    if (probes % LOG_EVERY_PROBES === 0) log.info({ because }, 'waiting for the CSI driver to be ready')
    await clock.sleep(PROBE_EVERY_MS, signal)
  }
}

async function whyNotReady(driver: CsiDriver, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { ready } = await driver.identity.probe({}, { signal })
    return ready === false ? 'the driver reports that it is not ready' : undefined // an unset `ready` means ready
  } catch (error) {
    signal.throwIfAborted()
    if (isUnimplemented(error)) return undefined // no Probe: assume that the driver is ready
    if (error instanceof CsiError) return error.message
    throw error
  }
}
