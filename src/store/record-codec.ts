// The bytes of a record and of its names, as lmdb.ts stores them: header and value apart, so that opening a store
// reads the headers without touching the values.
//
//   name    kind (1), revision (6, big-endian, so that records sort by it)
//   header  format (1), flags (1), createRevision (6), expiresAtMs (8, a double, if flagged), key (the rest)
//   value   as it was given; a tombstone has none
import type { RecordHeader } from './medium.ts'
import type { Revision } from './store.ts'

export type RecordName = [kind: number, revision: Revision]

/** Names sort by kind first: the values are last, so that new ones always come at the end of everything. */
export const DESCRIPTION = 0
export const HEADER = 1
export const VALUE = 2

const HEADER_FORMAT = 1
const FLAG_DELETED = 1
const FLAG_EXPIRES = 2
const KEY_START = 16

/** Writes the name at `start` and answers where it ends. */
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

/** `bytes` may be lent: nothing in the answer refers to it. */
export function decodeHeader(bytes: Buffer): HeaderFields {
  if (bytes[0] !== HEADER_FORMAT) {
    throw new Error(`it has a record of format ${bytes[0]}; this version of Stowage reads format ${HEADER_FORMAT}`)
  }
  if (bytes.length <= KEY_START) throw new Error(`it has a damaged record: the header ends after ${bytes.length} bytes`)
  const flags = bytes[1] as number
  return {
    key: bytes.toString('utf8', KEY_START, bytes.length),
    createRevision: bytes.readUIntBE(2, 6),
    expiresAtMs: flags & FLAG_EXPIRES ? bytes.readDoubleBE(8) : undefined,
    deleted: (flags & FLAG_DELETED) !== 0,
  }
}
