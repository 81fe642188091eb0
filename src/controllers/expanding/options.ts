// What growing volumes can be told, and what it does when it is not. The defaults are those of the external resizer.

export interface ExpandingOptions {
  /** For one call of the driver. Default 10 s. */
  readonly timeoutMs?: number
  /** Between two tries for a size that was refused. Default 5 min. */
  readonly slowRetryMs?: number
  /** Not to ask again while a volume is in use, once the driver refused because of that. Default true. */
  readonly handlesInUse?: boolean
  /** To refuse what cannot fit before the driver is asked; needs to read CSIDrivers and capacities. Default true. */
  readonly checksRoom?: boolean
}

export type ExpandingSettings = Required<ExpandingOptions>

export const expandingSettings = (options: ExpandingOptions = {}): ExpandingSettings => ({
  timeoutMs: options.timeoutMs ?? 10_000,
  slowRetryMs: options.slowRetryMs ?? 300_000,
  handlesInUse: options.handlesInUse ?? true,
  checksRoom: options.checksRoom ?? true,
})
