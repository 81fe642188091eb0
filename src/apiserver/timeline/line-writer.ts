// Writes lines of the journal as bytes into blocks that several chunks share, so that a record allocates no strings, and chunks
// that are merged together are usually next to each other in memory (unmerged-chunks.ts).

const FIRST_BLOCK_BYTES = 16 * 1024
/** Each block is twice as large as the one before it, up to this size. A chunk that is in memory keeps its whole block there. */
const BLOCK_BYTES_MAX = 256 * 1024
/** The longest UTF-8 form of a UTF-16 code unit. */
const UNIT_BYTES_MAX = 3

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const OPENING_BRACKET = 0x5b
const BACKSLASH = 0x5c

export class LineWriter {
  #block = Buffer.allocUnsafeSlow(FIRST_BLOCK_BYTES)
  /** Where the next result of `take` starts in the block. */
  #start = 0
  #end = 0

  /** Adds the start of a record: `["OWNER",TEMPLATE,TIME`. */
  start(owner: string, template: number, time: number): void {
    let position = this.#reserve(1)
    this.#block[position] = OPENING_BRACKET
    this.#end = position + 1
    this.quoted(owner)
    position = this.#reserve(2 * (DIGITS_MAX + 2))
    const bytes = this.#block
    bytes[position++] = COMMA
    position = writeInteger(bytes, position, template)
    bytes[position++] = COMMA
    if (time < 0) bytes[position++] = MINUS
    this.#end = writeInteger(bytes, position, Math.abs(time))
  }

  /** Adds text that contains only ASCII characters. */
  ascii(text: string): void {
    const { length } = text
    const start = this.#reserve(length)
    const bytes = this.#block
    for (let index = 0; index < length; index++) bytes[start + index] = text.charCodeAt(index)
    this.#end = start + length
  }

  /** Adds the text as a JSON string. */
  quoted(text: string): void {
    const { length } = text
    let position = this.#reserve(length + 2)
    const bytes = this.#block
    bytes[position++] = QUOTE
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index)
      if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) {
        this.#utf8(JSON.stringify(text))
        return
      }
      bytes[position++] = code
    }
    bytes[position++] = QUOTE
    this.#end = position
  }

  bytes(source: Uint8Array): void {
    const start = this.#reserve(source.length)
    this.#block.set(source, start)
    this.#end = start + source.length
  }

  /** Adds an integer from 0 to Number.MAX_SAFE_INTEGER. */
  integer(value: number): void {
    const start = this.#reserve(DIGITS_MAX)
    this.#end = writeInteger(this.#block, start, value)
  }

  /** Adds a number as JSON. Most are durations with at most three decimals. */
  number(value: number): void {
    const thousandths = Math.round(value * 1_000)
    if (!(thousandths >= 0 && thousandths < THOUSANDTHS_MAX) || thousandths / 1_000 !== value) {
      this.ascii(JSON.stringify(value))
      return
    }
    const whole = Math.floor(thousandths / 1_000)
    const decimals = thousandths - whole * 1_000
    let position = this.#reserve(DIGITS_MAX + DECIMALS_MAX)
    const bytes = this.#block
    position = writeInteger(bytes, position, whole)
    if (decimals > 0) {
      const hundreds = Math.floor(decimals / 100)
      const tens = Math.floor(decimals / 10) - hundreds * 10
      const ones = decimals - hundreds * 100 - tens * 10
      bytes[position++] = POINT
      bytes[position++] = ZERO + hundreds
      if (tens > 0 || ones > 0) bytes[position++] = ZERO + tens
      if (ones > 0) bytes[position++] = ZERO + ones
    }
    this.#end = position
  }

  /** Returns what was added since the last call. Its memory is not written again. */
  take(): Uint8Array {
    const bytes = this.#block.subarray(this.#start, this.#end)
    this.#start = this.#end
    return bytes
  }

  #utf8(text: string): void {
    const start = this.#reserve(text.length * UNIT_BYTES_MAX)
    this.#end = start + this.#block.write(text, start, 'utf8')
  }

  /** Makes room for this number of bytes. Returns the position at which they start. */
  #reserve(count: number): number {
    if (this.#end + count > this.#block.length) this.#addBlock(count)
    return this.#end
  }

  /** Continues in a new block, to which it copies what `take` has not returned yet. */
  #addBlock(count: number): void {
    const previous = this.#block
    const length = this.#end - this.#start
    const usual = Math.min(BLOCK_BYTES_MAX, 2 * previous.length)
    this.#block = Buffer.allocUnsafeSlow(Math.max(usual, 2 * length + count))
    previous.copy(this.#block, 0, this.#start, this.#end)
    this.#start = 0
    this.#end = length
  }
}

const DIGITS_MAX = String(Number.MAX_SAFE_INTEGER).length
const DECIMALS_MAX = 4
/** Beyond it, the product of a number and 1,000 is not exact. */
const THOUSANDTHS_MAX = 2 ** 50

/** Writes the digits at the position. Returns the position after them. */
function writeInteger(bytes: Uint8Array, start: number, value: number): number {
  let end = start + 1
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) end++
  let rest = value
  for (let position = end - 1; position >= start; position--) {
    const tenth = Math.floor(rest / 10)
    bytes[position] = ZERO + (rest - tenth * 10)
    rest = tenth
  }
  return end
}
