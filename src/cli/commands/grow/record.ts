// The record of `stowage grow --by`: an annotation on the claim with amount, target size and run. It is written together with
// the size and closed when all claims have grown, so that an interrupted run can be resumed and no claim grows twice.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isQuantity } from '../../../api/quantity.ts'

export const GROW_RECORD = 'grow.stowage.dev/by'

export interface GrowRecord {
  /** The run's id. */
  readonly run: string
  readonly by: string
  readonly to: string
  /** Set when all claims of the run have grown. */
  readonly closed?: true
}

/** Returns `unreadable` if the content of the annotation is not a record. */
export function recordOf({ metadata }: Readonly<PersistentVolumeClaim>): GrowRecord | 'unreadable' | undefined {
  const text = metadata.annotations?.[GROW_RECORD]
  if (text === undefined) return undefined
  try {
    const { run, by, to, closed } = JSON.parse(text)
    if (typeof run !== 'string' || !isQuantity(by) || !isQuantity(to)) return 'unreadable'
    return { run, by: String(by), to: String(to), ...(closed === true ? { closed } : {}) }
  } catch {
    return 'unreadable'
  }
}

export const encodeRecord = ({ run, by, to, closed }: GrowRecord): string =>
  JSON.stringify({ run, by, to, ...(closed ? { closed } : {}) })

/** Returns the ids of the interrupted runs of these claims. */
export const openRunsOf = (claims: readonly Readonly<PersistentVolumeClaim>[]): string[] => [
  ...new Set(
    claims.map(recordOf).flatMap((record) => (record && record !== 'unreadable' && !record.closed ? [record.run] : [])),
  ),
]
