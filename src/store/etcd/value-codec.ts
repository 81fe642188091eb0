// How a value is written into etcd: one byte that says whether it expires, the moment if it does, then the value.
// etcd's own leases are not used: they count seconds of etcd's clock, and a key would expire while nobody may see it.
const PLAIN = 1
const EXPIRING = 2
const MOMENT_BYTES = 8 // milliseconds since the epoch, a double

export function encodeValue(value: Uint8Array, expiresAtMs: number | undefined): Buffer {
  const headerBytes = expiresAtMs === undefined ? 1 : 1 + MOMENT_BYTES
  const bytes = Buffer.allocUnsafe(headerBytes + value.length)
  bytes[0] = expiresAtMs === undefined ? PLAIN : EXPIRING
  if (expiresAtMs !== undefined) bytes.writeDoubleBE(expiresAtMs, 1)
  bytes.set(value, headerBytes)
  return bytes
}

/** The value is a copy with memory of its own: it may be kept long after the message it came in. */
export function decodeValue(bytes: Uint8Array): { value: Buffer; expiresAtMs: number | undefined } {
  const isExpiring = bytes[0] === EXPIRING
  if (!isExpiring && bytes[0] !== PLAIN) {
    throw new Error(`a value has format ${bytes[0]}; this version of Stowage reads formats ${PLAIN} and ${EXPIRING}`)
  }
  const headerBytes = isExpiring ? 1 + MOMENT_BYTES : 1
  const value = Buffer.allocUnsafeSlow(bytes.length - headerBytes)
  value.set(bytes.subarray(headerBytes))
  const expiresAtMs = isExpiring
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readDoubleBE(1)
    : undefined
  return { value, expiresAtMs }
}
