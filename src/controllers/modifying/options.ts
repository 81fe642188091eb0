// What changing attributes can be told, and what it does when it is not. The defaults are those of the external resizer.
import type { Attributes } from './target.ts'

export interface ModifyingOptions {
  /** For one call of the driver. Default 10 s. */
  readonly timeoutMs?: number
  /** Between two tries for attributes that were refused. Default 5 min. */
  readonly slowRetryMs?: number
  /** To tell the driver for which claim and volume it is asked. Default false. */
  readonly extraModifyMetadata?: boolean
  /** Not to ask again while a volume is in use, once the driver refused because of that. Default true. */
  readonly handlesInUse?: boolean
  /** What a volume of this driver has where nobody said anything, so that it can be put back. Default: not known. */
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
