// The options of volume modification and their defaults.
import type { Attributes } from './target.ts'

export interface ModifyingOptions {
  /** Timeout of one driver call. Default 10 s. */
  readonly timeoutMs?: number
  /** Delay between two attempts for infeasible attributes. Default 5 min. */
  readonly slowRetryMs?: number
  /** Whether to send the names of the claim and the volume as parameters. Default false. */
  readonly extraModifyMetadata?: boolean
  /** Whether to wait until no pod uses a volume that the driver did not modify because it was in use. Default true. */
  readonly handlesInUse?: boolean
  /** The driver's default attributes, which a rollback restores. By default they are unknown. */
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
