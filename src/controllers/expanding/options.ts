// The options of volume expansion and their defaults.

export interface ExpandingOptions {
  /** Timeout of one driver call. Default 10 s. */
  readonly timeoutMs?: number
  /** Delay between two attempts for a size that the driver reported as infeasible. Default 5 min. */
  readonly slowRetryMs?: number
  /** Whether to wait until no pod uses a volume that the driver did not expand because it was in use. Default true. */
  readonly handlesInUse?: boolean
  /**
   * Whether to reject a size that exceeds the free capacity without calling the driver. Requires read access to CSIDrivers
   * and CSIStorageCapacities. Default true.
   */
  readonly checksCapacity?: boolean
}

export type ExpandingSettings = Required<ExpandingOptions>

export const expandingSettings = (options: ExpandingOptions = {}): ExpandingSettings => ({
  timeoutMs: options.timeoutMs ?? 10_000,
  slowRetryMs: options.slowRetryMs ?? 300_000,
  handlesInUse: options.handlesInUse ?? true,
  checksCapacity: options.checksCapacity ?? true,
})
