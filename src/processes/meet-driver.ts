// Waits for a CSI driver and reads what it is: its name, its capabilities, and the topology of its node.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { ServedNode } from '../controllers/volume-changes/index.ts'
import { type CsiDriver, CsiError, type DriverFacts, driverFacts, waitUntilReady } from '../csi/index.ts'

export interface MetDriver {
  readonly facts: DriverFacts
  /** The node the driver serves; absent: it serves all nodes. */
  readonly node?: ServedNode
}

export interface MeetDriverOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** The only node the driver serves. */
  readonly nodeName?: string
  /** Which failures are retried: only those of a driver that is not running, or every one. */
  readonly retry: 'unavailable' | 'always'
}

const RETRY_MS = 1_000

/** Rejects when the signal fires, or with a failure that is not retried. */
export async function meetDriver(driver: CsiDriver, options: MeetDriverOptions): Promise<MetDriver> {
  const { clock, log, signal, nodeName } = options
  let logged = ''
  for (;;) {
    try {
      await waitUntilReady(driver, { clock, log, signal })
      const facts = await driverFacts(driver, signal)
      return nodeName === undefined ? { facts } : { facts, node: await servedNode(driver, nodeName, signal) }
    } catch (error) {
      if (signal.aborted || (options.retry === 'unavailable' && !isUnavailable(error))) throw error
      const because = error instanceof Error ? error.message : String(error)
      if (because !== logged) log.warn({ because }, 'the CSI driver does not describe itself; retrying every second')
      logged = because
      await clock.sleep(RETRY_MS, signal)
    }
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof CsiError && error.codeName === 'UNAVAILABLE'

async function servedNode(driver: CsiDriver, name: string, signal: AbortSignal): Promise<ServedNode> {
  const { accessibleTopology } = await driver.node.nodeGetInfo({}, { signal })
  return { name, segments: accessibleTopology?.segments }
}
