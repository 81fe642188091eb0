// Encodes and decodes the frames of a backup archive. docs/reference/backup-format.md describes the format.
// write-archive.ts and read-archive.ts process whole archives.
import { crc32 } from 'node:zlib'

export const ARCHIVE_VERSION = 1
export const MAGIC = Buffer.from(`stowage-backup ${ARCHIVE_VERSION}\n`)
/** Type (1) and length of the payload (4) precede the payload, and a CRC-32 of all three follows it (4). Big-endian. */
export const FRAME_HEADER_BYTES = 5
export const CHECKSUM_BYTES = 4
export const PAYLOAD_BYTES_MAX = 128 * 1024 * 1024 // a longer frame is damaged: a transaction has at most 64 MiB

export const FRAME_TYPES = { manifest: 1, file: 2, entries: 3, kept: 4, end: 5 } as const

export interface Manifest {
  /** A random name of the archive. */
  readonly id: string
  readonly createdAt: string
  /** The format of the store, which determines the bytes of its entries. */
  readonly storeFormat: number
  /** Set while the records are migrated to that format. No incremental archive can continue such a backup. */
  readonly isMigrating?: true
  /** The newest revision in the archive. */
  readonly revision: number
  /** The revision of the backup that an incremental archive continues. Absent in a full archive. */
  readonly since?: number
  /** The name of the archive that this one continues, if it is known. */
  readonly parent?: string
}

/** The last frame, which shows that the archive is complete. */
export interface ArchiveEnd {
  /** Number of entries in the archive. */
  readonly entries: number
  /** Number of entries in the store, which an incremental archive contains only in part. */
  readonly storeEntries: number
  /** SHA-256 of all bytes before this frame. */
  readonly sha256: string
}

export interface StoreEntry {
  readonly name: Buffer
  readonly value: Buffer
}

/** The revisions after `afterRevision` and up to `upToRevision` that the store still has. */
export interface KeptRevisions {
  readonly afterRevision: number
  readonly upToRevision: number
  readonly revisions: readonly number[]
}

export type Frame =
  | { readonly type: 'manifest'; readonly manifest: Manifest }
  | { readonly type: 'file'; readonly name: string; readonly content: Buffer }
  | { readonly type: 'entries'; readonly entries: readonly StoreEntry[] }
  | { readonly type: 'kept'; readonly kept: KeptRevisions }
  | { readonly type: 'end'; readonly end: ArchiveEnd }

export function encodeFrame(frame: Frame): Buffer {
  const payload = encodePayload(frame)
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length + CHECKSUM_BYTES)
  bytes[0] = FRAME_TYPES[frame.type]
  bytes.writeUInt32BE(payload.length, 1)
  payload.copy(bytes, FRAME_HEADER_BYTES)
  const end = FRAME_HEADER_BYTES + payload.length
  bytes.writeUInt32BE(crc32(bytes.subarray(0, end)), end)
  return bytes
}

function encodePayload(frame: Frame): Buffer {
  if (frame.type === 'manifest') return Buffer.from(JSON.stringify(frame.manifest))
  if (frame.type === 'end') return Buffer.from(JSON.stringify(frame.end))
  if (frame.type === 'file')
    return Buffer.concat([Buffer.from(`${JSON.stringify({ name: frame.name })}\n`), frame.content])
  return frame.type === 'entries' ? encodeEntries(frame.entries) : encodeKept(frame.kept)
}

/** Returns the frame in the payload. Throws if the payload is malformed. */
export function decodeFrame(type: number, payload: Buffer): Frame {
  if (type === FRAME_TYPES.manifest) return { type: 'manifest', manifest: JSON.parse(payload.toString()) }
  if (type === FRAME_TYPES.end) return { type: 'end', end: JSON.parse(payload.toString()) }
  if (type === FRAME_TYPES.entries) return { type: 'entries', entries: decodeEntries(payload) }
  if (type === FRAME_TYPES.kept) return { type: 'kept', kept: decodeKept(payload) }
  if (type !== FRAME_TYPES.file) throw new Error(`a frame has the unknown type ${type}`)
  const end = payload.indexOf('\n')
  const { name } = JSON.parse(payload.toString('utf8', 0, end)) as { name: string }
  return { type: 'file', name, content: payload.subarray(end + 1) }
}

/** Each entry: length of the name (1), length of the value (4), name, value. */
export const ENTRY_HEADER_BYTES = 5

function encodeEntries(entries: readonly StoreEntry[]): Buffer {
  const size = entries.reduce((sum, { name, value }) => sum + ENTRY_HEADER_BYTES + name.length + value.length, 0)
  const bytes = Buffer.allocUnsafe(size)
  let offset = 0
  for (const { name, value } of entries) {
    bytes[offset] = name.length
    bytes.writeUInt32BE(value.length, offset + 1)
    bytes.set(name, offset + ENTRY_HEADER_BYTES)
    bytes.set(value, offset + ENTRY_HEADER_BYTES + name.length)
    offset += ENTRY_HEADER_BYTES + name.length + value.length
  }
  return bytes
}

function decodeEntries(bytes: Buffer): StoreEntry[] {
  const entries: StoreEntry[] = []
  for (let offset = 0; offset < bytes.length; ) {
    const nameStart = offset + ENTRY_HEADER_BYTES
    const valueStart = nameStart + bytes.readUInt8(offset)
    offset = valueStart + bytes.readUInt32BE(offset + 1)
    if (offset > bytes.length) throw new Error('an entry exceeds its frame')
    entries.push({ name: bytes.subarray(nameStart, valueStart), value: bytes.subarray(valueStart, offset) })
  }
  return entries
}

/**
 * `afterRevision` (6), `upToRevision` (6), and each revision as its difference from the previous one, in groups of 7
 * bits, low groups first.
 */
function encodeKept({ afterRevision, upToRevision, revisions }: KeptRevisions): Buffer {
  const bytes = Buffer.allocUnsafe(12 + revisions.length * DIFFERENCE_BYTES_MAX)
  bytes.writeUIntBE(afterRevision, 0, 6)
  bytes.writeUIntBE(upToRevision, 6, 6)
  let offset = 12
  let previousRevision = afterRevision
  for (const revision of revisions) {
    let difference = revision - previousRevision
    for (; difference >= 128; difference = Math.floor(difference / 128)) bytes[offset++] = 128 + (difference % 128)
    bytes[offset++] = difference
    previousRevision = revision
  }
  return bytes.subarray(0, offset)
}

const DIFFERENCE_BYTES_MAX = 7 // for 48 bits

function decodeKept(bytes: Buffer): KeptRevisions {
  const afterRevision = bytes.readUIntBE(0, 6)
  const revisions: number[] = []
  let previousRevision = afterRevision
  for (let offset = 12; offset < bytes.length; ) {
    let factor = 1
    for (; bytes.readUInt8(offset) >= 128; factor *= 128) previousRevision += (bytes.readUInt8(offset++) - 128) * factor
    previousRevision += bytes.readUInt8(offset++) * factor
    revisions.push(previousRevision)
  }
  return { afterRevision, upToRevision: bytes.readUIntBE(6, 6), revisions }
}
