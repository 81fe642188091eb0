// The settings of modification. The defaults are those of external-resizer.
import type { Attributes } from './target.ts'

export interface ModifyingOptions {
  /** Timeout of one driver call. Default 10 s. */
  readonly timeoutMs?: number
  /** Delay between two attempts for infeasible attributes. Default 5 min. */
  readonly slowRetryMs?: number
  /** Send the names of claim and volume as parameters. Default false. */
  readonly extraModifyMetadata?: boolean
  /** Once the driver has rejected a volume because it is in use, wait until no pod uses it. Default true. */
  readonly handlesInUse?: boolean
  /** The driver's default attributes, used to roll back a modification. Default: not known. */
  readonly defaults?: Attributes
}

export type ModifyingSettings = Required<ModifyingOptions>

export const modifyingSettings = (options: ModifyingOptions = {}): ModifyingSettings => ({
  timeoutMs: options.timeoutMs ?? 10_000,
  slowRetryMs: options.slowRetryMs ?? 300_000,
  extraModifyMetadata: options.extraModifyMetadata ?? false,
  handlesInUse: options.handlesInUse ?? true,
  defaults: options.defaults ?? {},
})
