// The policy of a StorageClass for volumes whose only copy was on a node that is lost (controllers/lost-volumes).
// `stowage why` and `stowage doctor` show it.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { parseDuration } from '../base/duration.ts'
import { LOST_VOLUME_POLICY } from './names.ts'

export type LostVolumePolicy =
  /** Changes nothing: the claim is usable again when the node returns. */
  | { readonly do: 'wait' }
  /** Sets the condition VolumeLost on the claim, so that users and tools recreate it. */
  | { readonly do: 'mark-lost' }
  /** Sets the same condition, and deletes the claim and the volume when this time has passed since the node was lost. */
  | { readonly do: 'delete'; readonly afterMs: number; readonly after: string }

export type ParsedLostVolumePolicy =
  | { readonly is: 'policy'; readonly policy: LostVolumePolicy }
  | { readonly is: 'invalid'; readonly message: string }

export const WAIT: LostVolumePolicy = { do: 'wait' }
export const LOST_VOLUME_POLICY_FORMS = 'wait, mark-lost or delete-after=DURATION, e.g. delete-after=72h'

const DELETE_AFTER = 'delete-after='
/** Ten years. Longer times are rejected. */
const DELETE_AFTER_MS_MAX = 10 * 365 * 24 * 3_600_000

export function parseLostVolumePolicy(text: string): ParsedLostVolumePolicy {
  if (text === 'wait' || text === 'mark-lost') return { is: 'policy', policy: { do: text } }
  const invalid = (message: string): ParsedLostVolumePolicy => ({ is: 'invalid', message })
  if (!text.startsWith(DELETE_AFTER))
    return invalid(`${JSON.stringify(text)} is not a policy: expected ${LOST_VOLUME_POLICY_FORMS}`)
  const after = text.slice(DELETE_AFTER.length)
  const afterMs = parseDuration(after)
  if (afterMs === undefined)
    return invalid(
      `${JSON.stringify(after)} is not a duration: expected hours, minutes or seconds, e.g. 72h, 90m or 30s`,
    )
  if (afterMs <= 0 || afterMs > DELETE_AFTER_MS_MAX)
    return invalid(`the duration ${JSON.stringify(after)} must be longer than 0s and at most 87600h`)
  return { is: 'policy', policy: { do: 'delete', afterMs, after } }
}

/** Returns the policy that the class sets, or undefined if it sets none. */
export function readLostVolumePolicy(storageClass: Readonly<StorageClass>): ParsedLostVolumePolicy | undefined {
  const text = annotationOf(storageClass, LOST_VOLUME_POLICY)
  return text === undefined ? undefined : parseLostVolumePolicy(text)
}

export const formatLostVolumePolicy = (policy: LostVolumePolicy): string =>
  policy.do === 'delete' ? `${DELETE_AFTER}${policy.after}` : policy.do
