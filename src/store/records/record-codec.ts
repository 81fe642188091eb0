// Encodes records for lmdb.ts. Header and value are stored under separate names, so that opening a store reads the
// headers without the values. Sizes in bytes:
//
//   name    kind (1), revision (6, big-endian, so that names sort by it)
//   header  format (1), flags (1), revision (6), createRevision (6), expiresAtMs (8, a double; 0 unless flagged),
//           checksum of the value (4), its size (4), key, checksum of all that precedes it (4)
//   value   the bytes of the put; a tombstone has no value
//
// Format 1 of the header, which stores of format 2 have, is: format, flags, createRevision, expiresAtMs, key.

import type { RecordHeader } from '../medium.ts'
import type { Revision } from '../store.ts'
import { checksumOf } from './checksum.ts'

export type RecordName = [kind: number, revision: Revision]

/** Names sort by kind first. Values are the last kind, so that a new value always sorts after all existing names. */
export const DESCRIPTION = 0
export const HEADER = 1
export const VALUE = 2

export const NAME_BYTES = 7

const HEADER_FORMAT = 2
const FLAG_DELETED = 1
const FLAG_EXPIRES = 2
const KEY_START = 30
const CHECKSUM_BYTES = 4

const OLD_HEADER_FORMAT = 1
const OLD_KEY_START = 16

/** Writes the name at `start` and returns the end offset. */
export function writeName([kind, revision]: RecordName, target: Buffer, start: number): number {
  target[start] = kind
  return target.writeUIntBE(revision, start + 1, 6)
}

export function readName(source: Buffer, start: number): RecordName {
  return [source[start] as number, source.readUIntBE(start + 1, 6)]
}

const REVISIONS = 2 ** 48
export const REVISION_MAX = REVISIONS - 1

/** Reads the sort key of a name: one number that sorts as names do. */
export const readSortKey = (source: Buffer, start: number): number =>
  (source[start] as number) * REVISIONS + source.readUIntBE(start + 1, 6)

export const sortKeyOf = ([kind, revision]: RecordName): number => kind * REVISIONS + revision

export const nameOfSortKey = (sortKey: number): RecordName => [Math.floor(sortKey / REVISIONS), sortKey % REVISIONS]

export interface RevisionRange {
  readonly first: Revision
  /** Undefined if all later revisions are in the range. */
  readonly last: Revision | undefined
}

/** Returns the revisions whose headers have sort keys from `lower` to before `upper`: one range, or none. */
export function headerRevisionsOf({
  lower,
  upper,
}: {
  readonly lower: number
  readonly upper: number
}): readonly RevisionRange[] {
  const start = sortKeyOf([HEADER, 0])
  const first = Math.max(lower - start, 1)
  const last = Math.min(upper - start - 1, REVISION_MAX)
  return last < first ? [] : [{ first, last: last === REVISION_MAX ? undefined : last }]
}

export function encodeHeader(header: RecordHeader): Buffer {
  const { key, revision, createRevision, expiresAtMs, isDeleted, checksum, valueBytes } = header
  const keyEnd = KEY_START + Buffer.byteLength(key)
  const bytes = Buffer.allocUnsafe(keyEnd + CHECKSUM_BYTES)
  bytes[0] = HEADER_FORMAT
  bytes[1] = (isDeleted ? FLAG_DELETED : 0) | (expiresAtMs === undefined ? 0 : FLAG_EXPIRES)
  bytes.writeUIntBE(revision, 2, 6)
  bytes.writeUIntBE(createRevision, 8, 6)
  bytes.writeDoubleBE(expiresAtMs ?? 0, 14)
  bytes.writeInt32BE(checksum, 22)
  bytes.writeUInt32BE(valueBytes, 26)
  bytes.write(key, KEY_START, 'utf8')
  bytes.writeInt32BE(checksumOf(bytes.subarray(0, keyEnd)), keyEnd)
  return bytes
}

/** A header whose bytes have changed since it was written. */
export interface DamagedHeader {
  readonly damage: string
  /** The key as far as it can be read. It may be wrong. */
  readonly key: string
}

/** A header of format 1, which has no checksums. */
export type OldHeader = Omit<RecordHeader, 'revision' | 'checksum' | 'valueBytes'> & { readonly isOld: true }

export const isDamagedHeader = (header: RecordHeader | DamagedHeader | OldHeader): header is DamagedHeader =>
  'damage' in header

export const isOldHeader = (header: RecordHeader | DamagedHeader | OldHeader): header is OldHeader => 'isOld' in header

/** Decodes a header. Copies all fields, because LMDB may reuse the memory of `bytes`. */
export function decodeHeader(bytes: Buffer): RecordHeader | DamagedHeader | OldHeader {
  if (bytes[0] === OLD_HEADER_FORMAT && bytes.length > OLD_KEY_START) return decodeOldHeader(bytes)
  const keyEnd = bytes.length - CHECKSUM_BYTES
  if (keyEnd <= KEY_START) return { key: '', damage: `its header has only ${bytes.length} bytes` }
  const key = bytes.toString('utf8', KEY_START, keyEnd)
  if (bytes.readInt32BE(keyEnd) !== checksumOf(bytes.subarray(0, keyEnd))) {
    return { key, damage: 'the checksum of its header does not match' }
  }
  if (bytes[0] !== HEADER_FORMAT) {
    throw new Error(
      `a record has format ${bytes[0]}; this version of Stowage reads formats ${OLD_HEADER_FORMAT} and ${HEADER_FORMAT}`,
    )
  }
  const flags = bytes[1] as number
  return {
    key,
    revision: readRevision(bytes, 2),
    createRevision: readRevision(bytes, 8),
    expiresAtMs: flags & FLAG_EXPIRES ? bytes.readDoubleBE(14) : undefined,
    isDeleted: (flags & FLAG_DELETED) !== 0,
    checksum: bytes.readInt32BE(22),
    valueBytes: bytes.readUInt32BE(26),
  }
}

/**
 * Returns a revision below 2³¹ as a small integer, which V8 keeps in the field of an object. readUIntBE returns a double, for which
 * V8 allocates 16 bytes: in a store of a million keys, 16 MB per field.
 */
function readRevision(bytes: Buffer, start: number): Revision {
  const high = bytes.readUInt16BE(start)
  const low = bytes.readUInt32BE(start + 2)
  return high === 0 ? low : high * 2 ** 32 + low
}

/** Returns why the header is not that of the record with this revision, or undefined if it is. */
export function headerDamageOf(
  revision: Revision,
  header: RecordHeader | DamagedHeader | OldHeader,
): string | undefined {
  if (isDamagedHeader(header)) return header.damage
  if (isOldHeader(header)) return 'its header has an older format than the store'
  return header.revision === revision ? undefined : `its header belongs to revision ${header.revision}`
}

function decodeOldHeader(bytes: Buffer): OldHeader {
  const flags = bytes[1] as number
  return {
    isOld: true,
    key: bytes.toString('utf8', OLD_KEY_START, bytes.length),
    createRevision: bytes.readUIntBE(2, 6),
    expiresAtMs: flags & FLAG_EXPIRES ? bytes.readDoubleBE(8) : undefined,
    isDeleted: (flags & FLAG_DELETED) !== 0,
  }
}
