// Calls GetCapacity for one item, with all parameters of the class, including reserved ones. A negative capacity is an
// error.
import type { CsiDriver } from '../../csi/index.ts'
import type { Item } from './items.ts'

export interface Report {
  readonly availableBytes: bigint
  /** Size of the largest possible volume; undefined if the driver does not report it. */
  readonly maximumBytes: bigint | undefined
}

export interface GetCapacityOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export async function getCapacity(driver: CsiDriver, item: Item, options: GetCapacityOptions): Promise<Report> {
  const { labels } = item.segment
  const containsAllNodes = Object.keys(labels).length === 0 // requests to a driver without topology must have no topology
  const request = {
    parameters: { ...item.storageClass.parameters },
    ...(containsAllNodes ? {} : { accessibleTopology: { segments: { ...labels } } }),
  }
  const { availableCapacity, maximumVolumeSize } = await driver.controller.getCapacity(request, options)
  for (const bytes of [availableCapacity, maximumVolumeSize ?? 0n]) {
    if (bytes < 0n) throw new Error(`GetCapacity returned ${bytes} bytes; a capacity cannot be negative`)
  }
  return { availableBytes: availableCapacity, maximumBytes: maximumVolumeSize }
}
