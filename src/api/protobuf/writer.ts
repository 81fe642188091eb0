// Writes the protobuf wire format: numbered fields of numbers, text, bytes and embedded messages. All messages share one
// buffer: an embedded message is written after one byte for its length, and moved if the length needs more bytes.

export interface ProtobufWriter {
  writeBoolean(number: number, value: boolean): void
  /** Writes a safe integer. A negative one takes ten bytes. */
  writeInt(number: number, value: number): void
  writeDouble(number: number, value: number): void
  writeString(number: number, value: string): void
  writeBytes(number: number, value: Uint8Array): void
  /** Writes the tag and the length of a bytes field. The caller adds the bytes. */
  writeBytesHead(number: number, length: number): void
  /** Writes an embedded message. `write` writes its fields. */
  writeMessage(number: number, write: () => void): void
  toBytes(): Buffer
}

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
/** The maximum size of an encoded length. Lengths are below 2^31. */
const LENGTH_BYTES_MAX = 5
const VARINT_BYTES_MAX = 10

export function createProtobufWriter(): ProtobufWriter {
  let buffer = Buffer.allocUnsafe(1024)
  let end = 0

  const reserve = (byteCount: number): void => {
    if (end + byteCount <= buffer.length) return
    const largerBuffer = Buffer.allocUnsafe(Math.max(buffer.length * 2, end + byteCount))
    buffer.copy(largerBuffer, 0, 0, end)
    buffer = largerBuffer
  }
  /** Writes seven bits per byte, lowest first. The high bit is set on all bytes except the last. */
  const writeVarint = (value: number): void => {
    reserve(VARINT_BYTES_MAX)
    let low = value >>> 0
    let high = Math.floor(value / 2 ** 32) >>> 0
    while (high > 0 || low > 0x7f) {
      buffer[end++] = (low & 0x7f) | 0x80
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    buffer[end++] = low
  }
  const writeTag = (number: number, wireType: number): void => writeVarint(number * 8 + wireType)

  return {
    writeBoolean(number, value) {
      writeTag(number, VARINT)
      writeVarint(value ? 1 : 0)
    },
    writeInt(number, value) {
      writeTag(number, VARINT)
      writeVarint(value)
    },
    writeDouble(number, value) {
      writeTag(number, FIXED64)
      reserve(8)
      end = buffer.writeDoubleLE(value, end)
    },
    writeString(number, value) {
      writeTag(number, LENGTH_DELIMITED)
      const length = Buffer.byteLength(value)
      writeVarint(length)
      reserve(length)
      end += buffer.write(value, end)
    },
    writeBytes(number, value) {
      writeTag(number, LENGTH_DELIMITED)
      writeVarint(value.length)
      reserve(value.length)
      buffer.set(value, end)
      end += value.length
    },
    writeBytesHead(number, length) {
      writeTag(number, LENGTH_DELIMITED)
      writeVarint(length)
    },
    writeMessage(number, write) {
      writeTag(number, LENGTH_DELIMITED)
      reserve(1)
      const start = ++end
      write()
      const length = end - start
      reserve(LENGTH_BYTES_MAX) // must run before `end` is moved back, because a larger buffer receives only the bytes before `end`
      buffer.copyWithin(start - 1 + varintLength(length), start, end)
      end = start - 1
      writeVarint(length)
      end += length
    },
    toBytes: () => Buffer.from(buffer.subarray(0, end)),
  }
}

function varintLength(value: number): number {
  let bytes = 1
  for (let remainingBits = value >>> 7; remainingBits > 0; remainingBits >>>= 7) bytes++
  return bytes
}
