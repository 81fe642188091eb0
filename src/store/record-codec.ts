// Encodes records for lmdb.ts. Header and value are stored under separate names, so that opening a store reads the
// headers without the values. Sizes in bytes:
//
//   name    kind (1), revision (6, big-endian, so that names sort by it)
//   header  format (1), flags (1), createRevision (6), expiresAtMs (8, a double; 0 unless flagged), key (the rest)
//   value   the bytes of the put; a tombstone has no value
import type { RecordHeader } from './medium.ts'
import type { Revision } from './store.ts'

export type RecordName = [kind: number, revision: Revision]

/** Names sort by kind first. Values are the last kind, so that a new value always sorts after all existing names. */
export const DESCRIPTION = 0
export const HEADER = 1
export const VALUE = 2

const HEADER_FORMAT = 1
const FLAG_DELETED = 1
const FLAG_EXPIRES = 2
const KEY_START = 16

/** Writes the name at `start` and returns the end offset. */
export function writeName([kind, revision]: RecordName, target: Buffer, start: number): number {
  target[start] = kind
  return target.writeUIntBE(revision, start + 1, 6)
}

export function readName(source: Buffer, start: number): RecordName {
  return [source[start] as number, source.readUIntBE(start + 1, 6)]
}

export type HeaderFields = Omit<RecordHeader, 'revision'>

export function encodeHeader({ key, createRevision, expiresAtMs, deleted }: HeaderFields): Buffer {
  const bytes = Buffer.allocUnsafe(KEY_START + Buffer.byteLength(key))
  bytes[0] = HEADER_FORMAT
  bytes[1] = (deleted ? FLAG_DELETED : 0) | (expiresAtMs === undefined ? 0 : FLAG_EXPIRES)
  bytes.writeUIntBE(createRevision, 2, 6)
  bytes.writeDoubleBE(expiresAtMs ?? 0, 8)
  bytes.write(key, KEY_START, 'utf8')
  return bytes
}

/** Decodes a header. Copies all fields, because LMDB may reuse the memory of `bytes`. */
export function decodeHeader(bytes: Buffer): HeaderFields {
  if (bytes[0] !== HEADER_FORMAT) {
    throw new Error(`a record has format ${bytes[0]}; this version of Stowage reads format ${HEADER_FORMAT}`)
  }
  if (bytes.length <= KEY_START) throw new Error(`a record is damaged: its header ends after ${bytes.length} bytes`)
  const flags = bytes[1] as number
  return {
    key: bytes.toString('utf8', KEY_START, bytes.length),
    createRevision: bytes.readUIntBE(2, 6),
    expiresAtMs: flags & FLAG_EXPIRES ? bytes.readDoubleBE(8) : undefined,
    deleted: (flags & FLAG_DELETED) !== 0,
  }
}
