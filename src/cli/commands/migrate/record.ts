// The record of `stowage migrate`, an annotation on the claim: operation, old and new class. It is written together with the
// class, so that any machine can resume or undo the operation, and removed when the claim is back. When all claims have moved
// it is closed; after that only --undo reads it.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'

export const MIGRATE_RECORD = 'migrate.stowage.dev/operation'

export interface MigrateRecord {
  /** The same for all claims of an operation. */
  readonly id: string
  /** '' means no class. */
  readonly from: string
  readonly to: string
  /** Being undone. */
  readonly undo?: true
  /** All claims of the operation have moved. */
  readonly closed?: true
}

/** Undefined also if the annotation has other content. */
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
