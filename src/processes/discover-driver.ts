// Waits for a CSI driver and reads its name, its capabilities and the topology of its node.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { ServedNode } from '../controllers/volume-changes/index.ts'
import { type CsiDriver, CsiError, type DriverFacts, readDriverFacts, waitUntilReady } from '../csi/index.ts'

export interface DiscoveredDriver {
  readonly facts: DriverFacts
  /** The node the driver serves. Absent if it serves all nodes. */
  readonly node?: ServedNode
}

export interface DiscoverDriverOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** The only node the driver serves. */
  readonly nodeName?: string
  /** `unavailable` retries only UNAVAILABLE, which means that the driver is not running. `always` retries every failure. */
  readonly retry: 'unavailable' | 'always'
}

const RETRY_MS = 1_000

/** Rejects when the signal is aborted, or with a failure that is not retried. */
export async function discoverDriver(driver: CsiDriver, options: DiscoverDriverOptions): Promise<DiscoveredDriver> {
  const { clock, log, signal, nodeName } = options
  let loggedMessage = ''
  for (;;) {
    try {
      await waitUntilReady(driver, { clock, log, signal })
      const facts = await readDriverFacts(driver, signal)
      return nodeName === undefined ? { facts } : { facts, node: await readServedNode(driver, nodeName, signal) }
    } catch (error) {
      if (signal.aborted || (options.retry === 'unavailable' && !isUnavailable(error))) throw error
      const message = error instanceof Error ? error.message : String(error)
      if (message !== loggedMessage) {
        log.warn({ reason: message }, 'cannot read the name and capabilities of the CSI driver; retrying every second')
      }
      loggedMessage = message
      await clock.sleep(RETRY_MS, signal)
    }
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof CsiError && error.codeName === 'UNAVAILABLE'

async function readServedNode(driver: CsiDriver, name: string, signal: AbortSignal): Promise<ServedNode> {
  const { accessibleTopology } = await driver.node.nodeGetInfo({}, { signal })
  return { name, segments: accessibleTopology?.segments }
}
