// Waits until a driver is ready by calling Probe every second.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { CsiDriver } from './driver.ts'
import { CsiError, isUnimplemented } from './errors.ts'

const PROBE_INTERVAL_MS = 1_000
const PROBES_PER_LOG = 30

export interface ReadyOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Resolves when the driver is ready, or rejects with the reason of the signal. */
export async function waitUntilReady(driver: CsiDriver, { clock, log, signal }: ReadyOptions): Promise<void> {
  for (let probes = 0; ; probes++) {
    const reason = await explainNotReady(driver, signal)
    if (reason === undefined) return
    // All but the first line are errors, so that a mistyped socket is noticed.
    const level = probes === 0 ? 'info' : 'error'
    if (probes % PROBES_PER_LOG === 0) log[level]({ reason }, 'waiting for the CSI driver to be ready')
    await clock.sleep(PROBE_INTERVAL_MS, signal)
  }
}

async function explainNotReady(driver: CsiDriver, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { ready } = await driver.identity.probe({}, { signal })
    return ready === false ? 'the driver reports that it is not ready' : undefined // an unset `ready` means ready
  } catch (error) {
    signal.throwIfAborted()
    if (isUnimplemented(error)) return undefined // a driver without Probe is assumed to be ready
    if (error instanceof CsiError) return error.message
    throw error
  }
}
