// What `stowage migrate` remembers on a claim: which operation moved it, from which class to which. It is written together
// with the class, so that the command can go on or go back from any machine, and is taken away when the claim is back. When
// all claims of an operation have arrived it is closed: then only going back still reads it.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'

export const MIGRATE_RECORD = 'migrate.stowage.dev/operation'

export interface MigrateRecord {
  /** The same for all claims of an operation. */
  readonly id: string
  /** '' is no class. */
  readonly from: string
  readonly to: string
  /** It is on its way back. */
  readonly undo?: true
  /** The whole operation has ended well. */
  readonly closed?: true
}

/** Nothing also where somebody has written something else there: then it is none of ours. */
export function recordOf({ metadata }: Readonly<PersistentVolumeClaim>): MigrateRecord | undefined {
  const text = metadata.annotations?.[MIGRATE_RECORD]
  if (text === undefined) return undefined
  try {
    const { id, from, to, undo, closed } = JSON.parse(text)
    if (![id, from, to].every((part) => typeof part === 'string')) return undefined
    return { id, from, to, ...(undo === true ? { undo } : {}), ...(closed === true ? { closed } : {}) }
  } catch {
    return undefined
  }
}

export const textOfRecord = ({ id, from, to, undo, closed }: MigrateRecord): string =>
  JSON.stringify({ id, from, to, ...(undo ? { undo } : {}), ...(closed ? { closed } : {}) })
