// Parses JSON bodies with strict UTF-8, bounded depth and exact numbers. Before JSON.parse, one pass over the bytes measures
// the depth (deep nesting would overflow the stack), finds numbers that would change in a double, and counts keys.
// If the parsed value has fewer keys, duplicate-keys.ts finds the duplicates.
import { isUtf8 } from 'node:buffer'
import { EXACT_LENGTH, isExactNumber } from './exact-number.ts'
import { describeSyntaxError, formatPosition } from './json-syntax-error.ts'

/** Bodies that are nested deeper are rejected. Recursive code can process this depth, and API objects do not reach it. */
export const JSON_DEPTH_MAX = 500

export class JsonError extends Error {
  override readonly name = 'JsonError'
}

/** The error for a body with more keys than allowed, which may be valid JSON. */
export class TooManyKeysError extends JsonError {}

export interface JsonOptions {
  /** Maximum nesting of objects and lists. Default JSON_DEPTH_MAX. */
  readonly depthMax?: number
  /** Maximum number of key-value pairs. Default: unlimited. */
  readonly keysMax?: number
}

export interface DecodedJson {
  readonly value: unknown
  /** The body as text, for findDuplicateKeys. */
  readonly text: string
  /** Number of key-value pairs in the text. If the parsed value has fewer, some keys are duplicates. */
  readonly keyCount: number
}

export const parseJson = (body: Uint8Array | string, options?: JsonOptions): unknown => decodeJson(body, options).value

export function decodeJson(body: Uint8Array | string, options: JsonOptions = {}): DecodedJson {
  const { depthMax = JSON_DEPTH_MAX, keysMax = Number.POSITIVE_INFINITY } = options
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const { depth, keyCount, inexactOffset } = measure(bytes, depthMax, keysMax)
  if (depth > depthMax)
    throw new JsonError(`invalid JSON: objects and lists are nested more than ${depthMax} levels deep`)
  if (keyCount > keysMax) throw new TooManyKeysError(`the body has more than ${keysMax} fields`)
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new JsonError(`invalid JSON: ${describeSyntaxError(text)}`)
  }
  if (inexactOffset !== undefined) {
    const offset = Buffer.from(bytes.subarray(0, inexactOffset)).toString('utf8').length
    throw new JsonError(`the number at ${formatPosition(text, offset)} ${INEXACT_MESSAGE}`)
  }
  return { value, text, keyCount }
}

/** The explanation in the error for a number that cannot be stored exactly. */
export const INEXACT_MESSAGE = 'has more digits than can be stored exactly; send a quantity as a string, such as "10Gi"'

/** Returns the number of key-value pairs in a JSON text. */
export const countKeys = (body: Uint8Array | string): number =>
  measure(typeof body === 'string' ? Buffer.from(body) : body, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
    .keyCount

function decodeUtf8(body: Uint8Array): string {
  if (!isUtf8(body)) throw new JsonError(`invalid JSON: the body is not valid UTF-8 at byte ${findInvalidByte(body)}`)
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}

// Finds the end of the longest valid prefix by bisection.
function findInvalidByte(body: Uint8Array): number {
  let validLength = 0
  let invalidLength = body.length
  while (invalidLength - validLength > 1) {
    const middle = (validLength + invalidLength) >> 1
    // A prefix may end inside a multi-byte character, so try up to three more bytes.
    const isPrefixValid = [0, 1, 2, 3].some((extraBytes) =>
      isUtf8(body.subarray(0, Math.min(middle + extraBytes, body.length))),
    )
    if (isPrefixValid) validLength = middle
    else invalidLength = middle
  }
  return validLength
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LOWER_E = 0x65
/** The bit in which the codes of a lower-case and an upper-case letter differ. */
const LOWER_CASE_BIT = 0x20

/** Whether a byte can follow the first digit of a number: a digit, a point, an exponent or its sign. */
const isNumberByte = (code: number): boolean =>
  (code >= ZERO && code <= NINE) ||
  code === POINT ||
  (code | LOWER_CASE_BIT) === LOWER_E ||
  code === PLUS ||
  code === MINUS

interface Measurement {
  readonly depth: number
  readonly keyCount: number
  /** The offset of the first number that would change in a double. */
  readonly inexactOffset: number | undefined
}

// Scans bytes, because that is faster than scanning characters. No byte of a multi-byte character equals one of these
// constants.
function measure(bytes: Uint8Array, depthMax: number, keysMax: number): Measurement {
  const length = bytes.length
  let inexactOffset: number | undefined
  let openCount = 0
  let depth = 0
  let keyCount = 0
  for (let i = 0; i < length; i++) {
    const code = bytes[i]!
    if (code === QUOTE) {
      for (i++; i < length; i++) {
        const inner = bytes[i]
        if (inner === QUOTE) break
        if (inner === BACKSLASH) i++
      }
    } else if (code === COLON) {
      if (++keyCount > keysMax) break
    } else if (code >= OPEN_BRACKET) {
      if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        openCount++
        if (openCount > depth) depth = openCount
        if (depth > depthMax) break
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        openCount--
      }
    } else if (code >= ZERO) {
      const start = i
      let hasExponent = false
      for (; i + 1 < length && isNumberByte(bytes[i + 1]!); i++)
        if ((bytes[i + 1]! | LOWER_CASE_BIT) === LOWER_E) hasExponent = true
      if (inexactOffset === undefined && (hasExponent || i + 1 - start >= EXACT_LENGTH)) {
        if (!isExactNumber(Buffer.from(bytes.subarray(start, i + 1)).toString('latin1'))) inexactOffset = start
      }
    }
  }
  return { depth, keyCount, inexactOffset }
}
