// Reads the protobuf wire format: numbered fields of varints, fixed-size values and length-delimited bytes, which may be
// messages. decode.ts applies the message types. Malformed input causes a ProtobufError with the byte offset.
import { isUtf8 } from 'node:buffer'

/** The error for input that is not valid protobuf or not a message of the expected type. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

const VARINT = 0
const FIXED64 = 1
export const LENGTH_DELIMITED = 2
const FIXED32 = 5

const WIRE_TYPES: Readonly<Record<number, string>> = {
  [VARINT]: 'a varint',
  [FIXED64]: 'eight bytes',
  [LENGTH_DELIMITED]: 'a length and bytes',
  [FIXED32]: 'four bytes',
}

/** Reads one message. For each field, the caller calls `moveToNextField` and then exactly one of the other methods. */
export class ProtobufReader {
  /** Number of the current field. */
  number = 0
  wireType = 0
  readonly #bytes: Buffer
  readonly #end: number
  #offset: number

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#offset = start
    this.#end = end
  }

  /** Advances to the next field. Returns false at the end of the message. */
  moveToNextField(): boolean {
    if (this.#offset === this.#end) return false
    const start = this.#offset
    const key = this.#varint()
    const number = Math.floor(key / 8)
    if (number < 1 || number > 2 ** 29 - 1) throw new ProtobufError(`invalid field key at byte ${start}`)
    this.number = number
    this.wireType = key % 8
    return true
  }

  readBoolean(): boolean {
    this.#expect(VARINT)
    return this.#varint() !== 0
  }

  readInt32(): number {
    this.#expect(VARINT)
    return this.#int32()
  }

  readInt64(): number {
    this.#expect(VARINT)
    return this.#int64()
  }

  readDouble(): number {
    this.#expect(FIXED64)
    return this.#bytes.readDoubleLE(this.#advance(8))
  }

  readBytes(): Buffer {
    const start = this.#lengthDelimited()
    return this.#bytes.subarray(start, this.#offset)
  }

  readString(): string {
    const start = this.#lengthDelimited()
    const text = this.#bytes.toString('utf8', start, this.#offset)
    // toString replaces invalid bytes with this character, which the text may also contain.
    if (text.includes('\ufffd') && !isUtf8(this.#bytes.subarray(start, this.#offset))) {
      throw new ProtobufError(`the text at byte ${start} is not valid UTF-8`)
    }
    return text
  }

  readMessage(): ProtobufReader {
    const start = this.#lengthDelimited()
    return new ProtobufReader(this.#bytes, start, this.#offset)
  }

  /** Reads several numbers that are packed into one field. */
  readPacked(item: 'boolean' | 'int32' | 'int64' | 'double'): (number | boolean)[] {
    const innerReader = this.readMessage()
    const items: (number | boolean)[] = []
    while (innerReader.#offset < innerReader.#end) {
      if (item === 'double') items.push(innerReader.#bytes.readDoubleLE(innerReader.#advance(8)))
      else if (item === 'boolean') items.push(innerReader.#varint() !== 0)
      else items.push(item === 'int32' ? innerReader.#int32() : innerReader.#int64())
    }
    return items
  }

  skipField(): void {
    if (this.wireType === VARINT) this.#varint()
    else if (this.wireType === FIXED64) this.#advance(8)
    else if (this.wireType === LENGTH_DELIMITED) this.#lengthDelimited()
    else if (this.wireType === FIXED32) this.#advance(4)
    else throw this.#wireTypeError('groups and other wire types are not supported')
  }

  #expect(wireType: number): void {
    if (this.wireType !== wireType) throw this.#wireTypeError(`expected ${WIRE_TYPES[wireType]}`)
  }

  #wireTypeError(expectation: string): ProtobufError {
    const actual = WIRE_TYPES[this.wireType] ?? `wire type ${this.wireType}`
    return new ProtobufError(`field ${this.number} before byte ${this.#offset} has ${actual}; ${expectation}`)
  }

  /** Advances past the bytes and returns their start. */
  #lengthDelimited(): number {
    this.#expect(LENGTH_DELIMITED)
    return this.#advance(this.#varint())
  }

  #advance(length: number): number {
    const start = this.#offset
    const availableBytes = this.#end - start
    if (length < 0 || length > availableBytes) {
      throw new ProtobufError(
        `field ${this.number} at byte ${start} has length ${length}, but only ${availableBytes} bytes are left`,
      )
    }
    this.#offset = start + length
    return start
  }

  #int64(): number {
    const start = this.#offset
    const value = this.#varint()
    if (!Number.isSafeInteger(value)) {
      throw new ProtobufError(
        `the number at byte ${start} is outside ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`,
      )
    }
    return value
  }

  #int32(): number {
    const start = this.#offset
    const value = this.#varint()
    if (value >= -(2 ** 31) && value < 2 ** 31) return value
    // A negative number has ten bytes, but some encoders write only the five bytes of the lower half.
    if (value > 0 && value < 2 ** 32) return value - 2 ** 32
    throw new ProtobufError(`the number at byte ${start} is outside ${-(2 ** 31)} to ${2 ** 31 - 1}`)
  }

  /** Reads a signed 64-bit number. A number outside the safe integers is rounded, but stays outside them. */
  #varint(): number {
    const start = this.#offset
    const firstByte = this.#bytes[start]!
    if (firstByte < 0x80 && start < this.#end) {
      this.#offset = start + 1
      return firstByte // the common case
    }
    let low = 0 // 7 bytes of 7 bits
    let high = 0 // the 15 bits above those
    for (let index = 0; index < 10; index++) {
      if (this.#offset >= this.#end) throw new ProtobufError(`the varint at byte ${start} is incomplete`)
      const byte = this.#bytes[this.#offset++]!
      if (index < 7) low += (byte & 0x7f) * 2 ** (7 * index)
      else if (index < 9 || byte <= 1) high += (byte & 0x7f) * 2 ** (7 * (index - 7))
      else break
      if (byte < 0x80) return (high >= 2 ** 14 ? high - 2 ** 15 : high) * 2 ** 49 + low
    }
    throw new ProtobufError(`the varint at byte ${start} does not fit into 64 bits`)
  }
}
