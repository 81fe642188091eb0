// Writes lines of the journal as bytes into one buffer that is used again, so that a record allocates no strings.

const INITIAL_BYTES = 16 * 1024
/** A larger buffer is not kept for the next chunk. */
const KEPT_BYTES_MAX = 256 * 1024
/** The longest UTF-8 form of a UTF-16 code unit. */
const UNIT_BYTES_MAX = 3

const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
const POINT = 0x2e

export class LineWriter {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0

  /** Adds text that contains only ASCII characters. */
  ascii(text: string): void {
    const { length } = text
    const start = this.#reserve(length)
    const bytes = this.#bytes
    for (let index = 0; index < length; index++) bytes[start + index] = text.charCodeAt(index)
    this.#length = start + length
  }

  /** Adds the text as a JSON string. */
  quoted(text: string): void {
    const { length } = text
    let position = this.#reserve(length + 2)
    const bytes = this.#bytes
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
    this.#length = position
  }

  bytes(source: Uint8Array): void {
    const start = this.#reserve(source.length)
    this.#bytes.set(source, start)
    this.#length = start + source.length
  }

  /** Adds an integer from 0 to Number.MAX_SAFE_INTEGER. */
  integer(value: number): void {
    const start = this.#reserve(DIGITS_MAX)
    this.#length = start + this.#digits(start, value)
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
    position += this.#digits(position, whole)
    const bytes = this.#bytes
    if (decimals > 0) {
      const hundreds = Math.floor(decimals / 100)
      const tens = Math.floor(decimals / 10) - hundreds * 10
      const ones = decimals - hundreds * 100 - tens * 10
      bytes[position++] = POINT
      bytes[position++] = ZERO + hundreds
      if (tens > 0 || ones > 0) bytes[position++] = ZERO + tens
      if (ones > 0) bytes[position++] = ZERO + ones
    }
    this.#length = position
  }

  /** Returns what was added since the last call, in memory of its own. */
  take(): Uint8Array {
    const copy = Buffer.allocUnsafeSlow(this.#length)
    this.#bytes.copy(copy, 0, 0, this.#length)
    this.#length = 0
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
    return copy
  }

  #utf8(text: string): void {
    const start = this.#reserve(text.length * UNIT_BYTES_MAX)
    this.#length = start + this.#bytes.write(text, start, 'utf8')
  }

  /** Writes the digits at the position and returns their number. */
  #digits(start: number, value: number): number {
    const bytes = this.#bytes
    let count = 1
    for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) count++
    let rest = value
    for (let position = start + count - 1; position >= start; position--) {
      const tenth = Math.floor(rest / 10)
      bytes[position] = ZERO + (rest - tenth * 10)
      rest = tenth
    }
    return count
  }

  /** Makes room for this number of bytes. Returns the position at which they start. */
  #reserve(count: number): number {
    const length = this.#length + count
    if (length > this.#bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length))
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    return this.#length
  }
}

const DIGITS_MAX = String(Number.MAX_SAFE_INTEGER).length
const DECIMALS_MAX = 4
/** Beyond it, the product of a number and 1,000 is not exact. */
const THOUSANDTHS_MAX = 2 ** 50
