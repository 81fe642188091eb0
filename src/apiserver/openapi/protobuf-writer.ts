// Writes the protobuf wire format, as much of it as documents need: booleans, strings and messages inside messages.
// Everything goes into one buffer: a message is written behind one byte for its length, and moved if that is too short.

export interface ProtobufWriter {
  boolean(number: number, value: boolean): void
  string(number: number, value: string): void
  /** `write` writes the fields of the embedded message. */
  message(number: number, write: () => void): void
  bytes(): Buffer
}

const VARINT = 0
const LENGTH_DELIMITED = 2
/** No varint of ours is longer: tags and lengths are below 2^31. */
const VARINT_BYTES_MAX = 5

export function createProtobufWriter(): ProtobufWriter {
  let buffer = Buffer.allocUnsafe(1024)
  let end = 0

  const makeRoom = (bytes: number): void => {
    if (end + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, end + bytes))
    buffer.copy(larger, 0, 0, end)
    buffer = larger
  }
  /** Seven bits to a byte, lowest first; the high bit says that more follow. */
  const varint = (value: number): void => {
    makeRoom(VARINT_BYTES_MAX)
    let rest = value
    while (rest > 0x7f) {
      buffer[end++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    buffer[end++] = rest
  }
  const tag = (number: number, wireType: number): void => varint((number << 3) | wireType)

  return {
    boolean(number, value) {
      tag(number, VARINT)
      varint(value ? 1 : 0)
    },
    string(number, value) {
      tag(number, LENGTH_DELIMITED)
      const length = Buffer.byteLength(value)
      varint(length)
      makeRoom(length)
      end += buffer.write(value, end)
    },
    message(number, write) {
      tag(number, LENGTH_DELIMITED)
      makeRoom(1)
      const start = ++end
      write()
      const length = end - start
      makeRoom(VARINT_BYTES_MAX) // while all that is written still lies before `end`
      buffer.copyWithin(start - 1 + varintBytes(length), start, end)
      end = start - 1
      varint(length)
      end += length
    },
    bytes: () => Buffer.from(buffer.subarray(0, end)),
  }
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes++
  return bytes
}
