// Reads the protobuf wire format: numbered fields of varints, fixed-size values and runs of bytes, of which some are
// messages themselves. Knows no message; whatever does not follow the format is refused with the place where.
import { isUtf8 } from 'node:buffer'

/** Bytes that are no protobuf, or not of the wanted message. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

export const VARINT = 0
export const FIXED64 = 1
export const LENGTH_DELIMITED = 2
const FIXED32 = 5

const WIRE_TYPES: Readonly<Record<number, string>> = {
  [VARINT]: 'a varint',
  [FIXED64]: 'eight bytes',
  [LENGTH_DELIMITED]: 'a length and bytes',
  [FIXED32]: 'four bytes',
}

/** A message: call `next` for each field, then exactly one of the methods below it. */
export class ProtobufReader {
  /** Of the field at hand. */
  number = 0
  wireType = 0
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = start
    this.#end = end
  }

  /** Goes to the next field; false at the end of the message. */
  next(): boolean {
    if (this.#at === this.#end) return false
    const start = this.#at
    const key = this.#varint()
    const number = Math.floor(key / 8)
    if (number < 1 || number > 2 ** 29 - 1) throw new ProtobufError(`no field has the key at byte ${start}`)
    this.number = number
    this.wireType = key % 8
    return true
  }

  boolean(): boolean {
    this.#expect(VARINT)
    return this.#varint() !== 0
  }

  int32(): number {
    this.#expect(VARINT)
    return this.#int32()
  }

  int64(): number {
    this.#expect(VARINT)
    return this.#int64()
  }

  double(): number {
    this.#expect(FIXED64)
    return this.#bytes.readDoubleLE(this.#advance(8))
  }

  bytes(): Buffer {
    const start = this.#lengthDelimited()
    return this.#bytes.subarray(start, this.#at)
  }

  string(): string {
    const start = this.#lengthDelimited()
    const text = this.#bytes.toString('utf8', start, this.#at)
    // What cannot be decoded is replaced by this character, which may also be meant.
    if (text.includes('\ufffd') && !isUtf8(this.#bytes.subarray(start, this.#at))) {
      throw new ProtobufError(`the text at byte ${start} is not valid UTF-8`)
    }
    return text
  }

  message(): ProtobufReader {
    const start = this.#lengthDelimited()
    return new ProtobufReader(this.#bytes, start, this.#at)
  }

  /** Several numbers in one field, one after the other. */
  packed(item: 'boolean' | 'int32' | 'int64' | 'double'): (number | boolean)[] {
    const inner = this.message()
    const items: (number | boolean)[] = []
    while (inner.#at < inner.#end) {
      if (item === 'double') items.push(inner.#bytes.readDoubleLE(inner.#advance(8)))
      else if (item === 'boolean') items.push(inner.#varint() !== 0)
      else items.push(item === 'int32' ? inner.#int32() : inner.#int64())
    }
    return items
  }

  skip(): void {
    if (this.wireType === VARINT) this.#varint()
    else if (this.wireType === FIXED64) this.#advance(8)
    else if (this.wireType === LENGTH_DELIMITED) this.#lengthDelimited()
    else if (this.wireType === FIXED32) this.#advance(4)
    else throw this.#wrong('groups and other wire types are not read')
  }

  #expect(wireType: number): void {
    if (this.wireType !== wireType) throw this.#wrong(`expected ${WIRE_TYPES[wireType]}`)
  }

  #wrong(why: string): ProtobufError {
    const found = WIRE_TYPES[this.wireType] ?? `wire type ${this.wireType}`
    return new ProtobufError(`field ${this.number} before byte ${this.#at} has ${found}; ${why}`)
  }

  /** Steps over the bytes and answers where they start. */
  #lengthDelimited(): number {
    this.#expect(LENGTH_DELIMITED)
    return this.#advance(this.#varint())
  }

  #advance(length: number): number {
    const start = this.#at
    const left = this.#end - start
    if (length < 0 || length > left) {
      throw new ProtobufError(
        `field ${this.number} should go on for ${length} bytes at byte ${start}; ${left} are left`,
      )
    }
    this.#at = start + length
    return start
  }

  #int64(): number {
    const start = this.#at
    const value = this.#varint()
    if (!Number.isSafeInteger(value)) {
      throw new ProtobufError(
        `the number at byte ${start} is outside ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`,
      )
    }
    return value
  }

  #int32(): number {
    const start = this.#at
    const value = this.#varint()
    if (value >= -(2 ** 31) && value < 2 ** 31) return value
    // Negative numbers have ten bytes; some writers make do with the five of their lower half.
    if (value > 0 && value < 2 ** 32) return value - 2 ** 32
    throw new ProtobufError(`the number at byte ${start} is outside ${-(2 ** 31)} to ${2 ** 31 - 1}`)
  }

  /** As a signed 64-bit number; one beyond the safe integers comes out rounded and beyond them too. */
  #varint(): number {
    const start = this.#at
    const first = this.#bytes[start]!
    if (first < 0x80 && start < this.#end) {
      this.#at = start + 1
      return first // by far the most are this short
    }
    let low = 0 // 7 bytes of 7 bits
    let high = 0 // the 15 bits above those
    for (let index = 0; index < 10; index++) {
      if (this.#at >= this.#end) throw new ProtobufError(`the varint at byte ${start} has no end`)
      const byte = this.#bytes[this.#at++]!
      if (index < 7) low += (byte & 0x7f) * 2 ** (7 * index)
      else if (index < 9 || byte <= 1) high += (byte & 0x7f) * 2 ** (7 * (index - 7))
      else break
      if (byte < 0x80) return (high >= 2 ** 14 ? high - 2 ** 15 : high) * 2 ** 49 + low
    }
    throw new ProtobufError(`the varint at byte ${start} does not fit into 64 bits`)
  }
}
