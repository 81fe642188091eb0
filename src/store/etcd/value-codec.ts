// Encodes values for etcd: format (1 byte), the sub-revisions (revision-mapping.ts) of the write and of the key's creation
// (2 bytes each), expiresAtMs if the key expires (8 bytes), a checksum of the key and all other bytes if the format has one
// (4 bytes), value. Expiry does not use etcd leases, because they use etcd's clock and would delete a key without a
// transaction of the store.
import { checksumOf } from '../records/checksum.ts'

interface Format {
  readonly id: number
  readonly isExpiring: boolean
  readonly hasChecksum: boolean
}

// The formats with a checksum differ from the others in more than two bits, so that flipped bits do not hide the checksum.
const FORMATS: readonly Format[] = [
  { id: 3, isExpiring: false, hasChecksum: false },
  { id: 4, isExpiring: true, hasChecksum: false },
  { id: 0x55, isExpiring: false, hasChecksum: true },
  { id: 0xaa, isExpiring: true, hasChecksum: true },
]
const SUBS_END = 5 // after the format and two sub-revisions
const EXPIRY_BYTES = 8 // milliseconds since the epoch, a double
const CHECKSUM_BYTES = 4

export interface StoredValue {
  readonly value: Uint8Array
  readonly expiresAtMs: number | undefined
  readonly sub: number
  readonly createSub: number
}

export interface DecodedValue extends StoredValue {
  /** Why the value cannot be used. The other fields may be wrong. */
  readonly damage?: string
}

/** Encodes a value of a key, with a checksum if `hasChecksum`. Versions of Stowage before 0.2.0 do not read checksums. */
export function encodeValue(key: string, storedValue: StoredValue, { hasChecksum }: { hasChecksum: boolean }): Buffer {
  const { value, expiresAtMs, sub, createSub } = storedValue
  const isExpiring = expiresAtMs !== undefined
  const format = FORMATS.find(
    (candidate) => candidate.isExpiring === isExpiring && candidate.hasChecksum === hasChecksum,
  )!
  const headerBytes = headerBytesOf(format)
  const bytes = Buffer.allocUnsafe(headerBytes + value.length)
  bytes[0] = format.id
  bytes.writeUInt16BE(sub, 1)
  bytes.writeUInt16BE(createSub, 3)
  if (isExpiring) bytes.writeDoubleBE(expiresAtMs, SUBS_END)
  bytes.set(value, headerBytes)
  if (hasChecksum) bytes.writeInt32BE(checksumOfValue(key, bytes, headerBytes), headerBytes - CHECKSUM_BYTES)
  return bytes
}

/** Decodes a key's value. Copies it, so that a cached value does not retain the whole etcd response. */
export function decodeValue(key: string, storedBytes: Uint8Array): DecodedValue {
  const bytes = Buffer.from(storedBytes.buffer, storedBytes.byteOffset, storedBytes.byteLength)
  const format = FORMATS.find(({ id }) => id === bytes[0])
  if (!format) return damagedValue(`its format ${bytes[0]} is unknown`)
  const headerBytes = headerBytesOf(format)
  if (bytes.length < headerBytes) return damagedValue(`it has ${bytes.length} bytes, less than its header`)
  const value = Buffer.allocUnsafeSlow(bytes.length - headerBytes)
  value.set(bytes.subarray(headerBytes))
  const expiresAtMs = format.isExpiring ? bytes.readDoubleBE(SUBS_END) : undefined
  const decodedValue = { value, expiresAtMs, sub: bytes.readUInt16BE(1), createSub: bytes.readUInt16BE(3) }
  const isDamaged =
    format.hasChecksum && bytes.readInt32BE(headerBytes - CHECKSUM_BYTES) !== checksumOfValue(key, bytes, headerBytes)
  return isDamaged ? damagedValue('its checksum does not match') : decodedValue
}

const damagedValue = (damage: string): DecodedValue => ({
  damage,
  value: new Uint8Array(0),
  expiresAtMs: undefined,
  sub: 0,
  createSub: 0,
})

const headerBytesOf = ({ isExpiring, hasChecksum }: Format): number =>
  SUBS_END + (isExpiring ? EXPIRY_BYTES : 0) + (hasChecksum ? CHECKSUM_BYTES : 0)

function checksumOfValue(key: string, bytes: Buffer, headerBytes: number): number {
  const keyChecksum = checksumOf(Buffer.from(key))
  const headerChecksum = checksumOf(bytes.subarray(0, headerBytes - CHECKSUM_BYTES), keyChecksum)
  return checksumOf(bytes.subarray(headerBytes), headerChecksum)
}
