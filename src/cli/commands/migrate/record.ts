// The record of `stowage migrate`: an annotation on the claim with the operation and the old and new class. It is written
// together with the class, so that the operation can be resumed or undone on any machine. It is closed when all claims have
// moved, and removed when the claim is back in its old class.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'

export const MIGRATE_RECORD = 'migrate.stowage.dev/operation'

export interface MigrateRecord {
  /** The operation's id. */
  readonly id: string
  /** Empty if the claim had no class. */
  readonly from: string
  readonly to: string
  /** Set while the operation is being undone. */
  readonly undo?: true
  /** Set when all claims of the operation have moved. */
  readonly closed?: true
}

/** Returns undefined if the annotation is absent or its content is not a record. */
export function recordOf({ metadata }: Readonly<PersistentVolumeClaim>): MigrateRecord | undefined {
  const text = metadata.annotations?.[MIGRATE_RECORD]
  if (text === undefined) return undefined
  try {
    const { id, from, to, undo, closed } = JSON.parse(text)
    if (![id, from, to].every((field) => typeof field === 'string')) return undefined
    return { id, from, to, ...(undo === true ? { undo } : {}), ...(closed === true ? { closed } : {}) }
  } catch {
    return undefined
  }
}

export const encodeRecord = ({ id, from, to, undo, closed }: MigrateRecord): string =>
  JSON.stringify({ id, from, to, ...(undo ? { undo } : {}), ...(closed ? { closed } : {}) })
