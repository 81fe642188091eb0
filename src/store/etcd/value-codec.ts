// How a value is written into etcd: one byte that says whether it expires, the places in their groups (numbering.ts) of
// the writes that made this value and that created the key, the moment if it expires, then the value.
// etcd's own leases are not used: they count seconds of etcd's clock, and a key would expire while nobody may see it.
const PLAIN = 3
const EXPIRING = 4
const PLACES_END = 5 // after the format: two places of two bytes
const MOMENT_BYTES = 8 // milliseconds since the epoch, a double

export interface StoredValue {
  readonly value: Uint8Array
  readonly expiresAtMs: number | undefined
  readonly place: number
  readonly createPlace: number
}

export function encodeValue({ value, expiresAtMs, place, createPlace }: StoredValue): Buffer {
  const headerBytes = expiresAtMs === undefined ? PLACES_END : PLACES_END + MOMENT_BYTES
  const bytes = Buffer.allocUnsafe(headerBytes + value.length)
  bytes[0] = expiresAtMs === undefined ? PLAIN : EXPIRING
  bytes.writeUInt16BE(place, 1)
  bytes.writeUInt16BE(createPlace, 3)
  if (expiresAtMs !== undefined) bytes.writeDoubleBE(expiresAtMs, PLACES_END)
  bytes.set(value, headerBytes)
  return bytes
}

/** The value is a copy with memory of its own: it may be kept long after the message it came in. */
export function decodeValue(stored: Uint8Array): StoredValue {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  const isExpiring = bytes[0] === EXPIRING
  if (!isExpiring && bytes[0] !== PLAIN) {
    throw new Error(`a value has format ${bytes[0]}; this version of Stowage reads formats ${PLAIN} and ${EXPIRING}`)
  }
  const headerBytes = isExpiring ? PLACES_END + MOMENT_BYTES : PLACES_END
  if (bytes.length < headerBytes) throw new Error(`a value of ${bytes.length} bytes is shorter than its header`)
  const value = Buffer.allocUnsafeSlow(bytes.length - headerBytes)
  value.set(bytes.subarray(headerBytes))
  const expiresAtMs = isExpiring ? bytes.readDoubleBE(PLACES_END) : undefined
  return { value, expiresAtMs, place: bytes.readUInt16BE(1), createPlace: bytes.readUInt16BE(3) }
}
