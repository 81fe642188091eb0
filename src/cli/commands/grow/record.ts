// What `stowage grow --by` remembers on a claim: by how much, up to which size, and in which run. It is written together
// with the size and closed only when the whole set has grown, so that a run that was interrupted goes on when it is run
// again, and no claim grows twice.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isQuantity } from '../../../api/quantity.ts'

export const GROW_RECORD = 'grow.stowage.dev/by'

export interface GrowRecord {
  /** The same for all claims of a set. */
  readonly run: string
  readonly by: string
  readonly to: string
  /** The whole set has grown. */
  readonly closed?: true
}

/** `unreadable`: somebody has written something else there. */
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

export const textOfRecord = ({ run, by, to, closed }: GrowRecord): string =>
  JSON.stringify({ run, by, to, ...(closed ? { closed } : {}) })

/** The runs of a set that were interrupted: their claims have the size they are to get on record. */
export const openRuns = (claims: readonly Readonly<PersistentVolumeClaim>[]): string[] => [
  ...new Set(
    claims.map(recordOf).flatMap((record) => (record && record !== 'unreadable' && !record.closed ? [record.run] : [])),
  ),
]
