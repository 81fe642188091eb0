// The description of a store on LMDB: its format and its compaction floors, as JSON with a checksum. A format-2 description
// has no checksum.

import { type Floors, NO_FLOORS } from '../medium.ts'
import { checksumOf } from './checksum.ts'

/** The format that this version writes. */
export const STORE_FORMAT = 3

/** The oldest format that this version migrates. Format 1 was never released. */
export const OLDEST_FORMAT = 2

export interface Description {
  readonly store: 'stowage'
  readonly format: number
  readonly floors: Floors
  /** The format from which the records are being migrated, until all of them have the new format. */
  readonly migratingFrom?: number
}

const CHECKSUM = /,"checksum":(-?\d+)\}$/

export const newDescription = (floors: Floors = NO_FLOORS): Description => ({
  store: 'stowage',
  format: STORE_FORMAT,
  floors,
})

export function encodeDescription(description: Description): Buffer {
  const text = JSON.stringify(description)
  return Buffer.from(`${text.slice(0, -1)},"checksum":${checksumOf(Buffer.from(text))}}`)
}

/** Throws an error that names the file if the description is foreign, damaged, or of a format that cannot be read. */
export function parseDescription(path: string, bytes: Uint8Array): Description {
  const text = Buffer.from(bytes).toString()
  let description: Partial<Description> = {}
  try {
    description = JSON.parse(text)
  } catch {}
  if (description?.store !== 'stowage') throw foreignFileError(path)
  const { format = 0 } = description
  if (format > STORE_FORMAT) {
    throw new Error(
      `${path} is a store of format ${format}, which a newer version of Stowage wrote; this version reads formats up to ` +
        `${STORE_FORMAT}. Run the newer version, or restore a backup from before the upgrade.`,
    )
  }
  if (format < OLDEST_FORMAT) {
    throw new Error(
      `${path} is a store of format ${format}; this version of Stowage reads formats ${OLDEST_FORMAT} and ${STORE_FORMAT}.`,
    )
  }
  // Format 2 has no checksum: if there is one, the number of the format is damaged, and the checksum does not match.
  if ((format >= STORE_FORMAT || CHECKSUM.test(text)) && !hasValidChecksum(text)) {
    throw new Error(`${path} is damaged: the checksum of its description does not match. Restore it from a backup.`)
  }
  return description as Description
}

function hasValidChecksum(text: string): boolean {
  const match = CHECKSUM.exec(text)
  if (!match) return false
  return checksumOf(Buffer.from(`${text.slice(0, match.index)}}`)) === Number(match[1])
}

export const foreignFileError = (path: string) =>
  new Error(`${path} is not a Stowage store: it belongs to another program, or its description is damaged.`)
