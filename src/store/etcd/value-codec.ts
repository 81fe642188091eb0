// Encodes values for etcd: format (1 byte), the sub-revisions (revision-mapping.ts) of the write and of the key's creation
// (2 bytes each), expiresAtMs if the key expires (8 bytes), value. Expiry does not use etcd leases, because they use etcd's
// clock and would delete a key without a transaction of the store.
const PLAIN = 3
const EXPIRING = 4
const SUBS_END = 5 // after the format and two sub-revisions
const EXPIRY_BYTES = 8 // milliseconds since the epoch, a double

export interface StoredValue {
  readonly value: Uint8Array
  readonly expiresAtMs: number | undefined
  readonly sub: number
  readonly createSub: number
}

export function encodeValue({ value, expiresAtMs, sub, createSub }: StoredValue): Buffer {
  const headerBytes = expiresAtMs === undefined ? SUBS_END : SUBS_END + EXPIRY_BYTES
  const bytes = Buffer.allocUnsafe(headerBytes + value.length)
  bytes[0] = expiresAtMs === undefined ? PLAIN : EXPIRING
  bytes.writeUInt16BE(sub, 1)
  bytes.writeUInt16BE(createSub, 3)
  if (expiresAtMs !== undefined) bytes.writeDoubleBE(expiresAtMs, SUBS_END)
  bytes.set(value, headerBytes)
  return bytes
}

/** Decodes a value. Copies it, so that a cached value does not retain the whole etcd response. */
export function decodeValue(stored: Uint8Array): StoredValue {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  const isExpiring = bytes[0] === EXPIRING
  if (!isExpiring && bytes[0] !== PLAIN) {
    throw new Error(`a value has format ${bytes[0]}; this version of Stowage reads formats ${PLAIN} and ${EXPIRING}`)
  }
  const headerBytes = isExpiring ? SUBS_END + EXPIRY_BYTES : SUBS_END
  if (bytes.length < headerBytes) throw new Error(`a value of ${bytes.length} bytes is shorter than its header`)
  const value = Buffer.allocUnsafeSlow(bytes.length - headerBytes)
  value.set(bytes.subarray(headerBytes))
  const expiresAtMs = isExpiring ? bytes.readDoubleBE(SUBS_END) : undefined
  return { value, expiresAtMs, sub: bytes.readUInt16BE(1), createSub: bytes.readUInt16BE(3) }
}
