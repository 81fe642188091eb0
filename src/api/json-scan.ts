// Parses JSON bodies with strict UTF-8, bounded depth, exact numbers and error positions. Before JSON.parse, one pass over the
// bytes measures the depth, so that hostile nesting cannot overflow the stack, finds numbers that would change in a double,
// and counts keys: a parsed value with fewer keys shows that the text has duplicates.
import { isUtf8 } from 'node:buffer'
import { EXACT_LENGTH, isExactNumber } from './exact-number.ts'

/** Bodies that are nested deeper are rejected. Recursive code can process this depth, and API objects do not reach it. */
export const JSON_DEPTH_MAX = 500

/** Further duplicates are not reported. */
export const DUPLICATE_KEYS_MAX = 100

export class JsonError extends Error {
  override readonly name = 'JsonError'
}

export interface JsonOptions {
  /** Maximum nesting of objects and lists. Default JSON_DEPTH_MAX. */
  readonly depthMax?: number
}

export interface DecodedJson {
  readonly value: unknown
  /** The body as text, for findDuplicateKeys. */
  readonly text: string
  /** Number of key-value pairs in the text. If the parsed value has fewer, some keys are duplicates. */
  readonly keyCount: number
}

export const parseJson = (body: Uint8Array | string, options?: JsonOptions): unknown => decodeJson(body, options).value

export function decodeJson(body: Uint8Array | string, { depthMax = JSON_DEPTH_MAX }: JsonOptions = {}): DecodedJson {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const { depth, keyCount, inexactOffset } = measure(bytes, depthMax)
  if (depth > depthMax) throw new JsonError(`invalid JSON: objects and lists are nested more than ${depthMax} deep`)
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new JsonError(`invalid JSON: ${describeFirstError(text)}`)
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
  measure(typeof body === 'string' ? Buffer.from(body) : body, Number.POSITIVE_INFINITY).keyCount

/** Returns the paths of duplicate keys in a valid JSON text: `['spec.x', 'spec.containers[0].name']`. */
export function findDuplicateKeys(text: string): string[] {
  const duplicates = new Set<string>()
  const levels: Level[] = []
  for (let i = 0; i < text.length && duplicates.size < DUPLICATE_KEYS_MAX; i++) {
    const level = levels.at(-1)
    switch (text[i]) {
      case '{':
        levels.push({ keys: new Set(), current: '' })
        break
      case '[':
        levels.push({ keys: undefined, current: 0 })
        break
      case '}':
      case ']':
        levels.pop()
        break
      case ',':
        if (typeof level?.current === 'number') level.current += 1
        break
      case '"': {
        const end = endOfString(text, i)
        if (level?.keys && isKey(text, end)) {
          level.current = JSON.parse(text.slice(i, end)) as string
          if (level.keys.has(level.current)) duplicates.add(pathOf(levels))
          level.keys.add(level.current)
        }
        i = end - 1
      }
    }
  }
  return [...duplicates]
}

/** An object or list that is open at the current position. */
interface Level {
  /** The keys before the current position; undefined for a list. */
  readonly keys: Set<string> | undefined
  /** The current key or index. */
  current: string | number
}

const pathOf = (levels: readonly Level[]): string =>
  levels
    .map(({ current }) => (typeof current === 'number' ? `[${current}]` : `.${current}`))
    .join('')
    .replace(/^\./, '')

const isKey = (text: string, end: number): boolean => text.charCodeAt(skipSpace(text, end)) === COLON

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
    const prefixIsValid = [0, 1, 2, 3].some((extraBytes) =>
      isUtf8(body.subarray(0, Math.min(middle + extraBytes, body.length))),
    )
    if (prefixIsValid) validLength = middle
    else invalidLength = middle
  }
  return validLength
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LOWER_CASE = 0x20
const LOWER_E = 0x65

/** Whether a byte can follow the first digit of a number: a digit, a point, an exponent or its sign. */
const isNumberByte = (code: number): boolean =>
  (code >= ZERO && code <= NINE) || code === 0x2e || (code | LOWER_CASE) === LOWER_E || code === 0x2b || code === 0x2d

interface Measurement {
  readonly depth: number
  readonly keyCount: number
  /** The offset of the first number that would change in a double. */
  readonly inexactOffset: number | undefined
}

// Scans bytes, because that is more than twice as fast as scanning characters. No byte of a multi-byte character equals one
// of these constants.
function measure(bytes: Uint8Array, depthMax: number): Measurement {
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
      keyCount++
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
        if ((bytes[i + 1]! | LOWER_CASE) === LOWER_E) hasExponent = true
      if (inexactOffset === undefined && (hasExponent || i + 1 - start >= EXACT_LENGTH)) {
        if (!isExactNumber(Buffer.from(bytes.subarray(start, i + 1)).toString('latin1'))) inexactOffset = start
      }
    }
  }
  return { depth, keyCount, inexactOffset }
}

// Scans invalid JSON again for the reason and position of the error. The messages of JSON.parse are not used, because they
// differ between Node.js versions and quote the body, which may contain a secret.
function describeFirstError(text: string): string {
  const openBrackets: ('{' | '[')[] = []
  let expected: Expectation = 'a value'
  for (let i = skipSpace(text, 0); ; i = skipSpace(text, i)) {
    const character = text[i]
    if (expected === 'the end' && character === undefined) return 'unknown position'
    if (character === '"' && expected !== "':'" && expected !== 'the end' && !expected.startsWith("','")) {
      const end = endOfString(text, i)
      const error = findStringError(text.slice(i + 1, end - 1))
      if (error) return `${error.reason} at ${formatPosition(text, i + 1 + error.offset)}`
      if (text[end - 1] !== '"' || end - i < 2) return `a string that starts at ${formatPosition(text, i)} does not end`
      i = end
      expected = expected.startsWith('a key') ? "':'" : expectedAfterValue(openBrackets)
    } else if (expected.startsWith('a value') && (character === '{' || character === '[')) {
      openBrackets.push(character)
      i += 1
      expected = character === '{' ? "a key or '}'" : "a value or ']'"
    } else if (expected.startsWith('a value') && scalarLength(text, i) > 0) {
      i += scalarLength(text, i)
      expected = expectedAfterValue(openBrackets)
    } else if (
      character !== undefined &&
      (character === '}' || character === ']') &&
      expected.endsWith(`'${character}'`)
    ) {
      openBrackets.pop()
      i += 1
      expected = expectedAfterValue(openBrackets)
    } else if (character === ',' && expected.startsWith("','")) {
      i += 1
      expected = openBrackets.at(-1) === '{' ? 'a key' : 'a value'
    } else if (character === ':' && expected === "':'") {
      i += 1
      expected = 'a value'
    } else {
      return `expected ${expected} but found ${character === undefined ? 'the end' : JSON.stringify(character)} at ${formatPosition(text, i)}`
    }
  }
}

type Expectation =
  | 'a value'
  | "a value or ']'"
  | 'a key'
  | "a key or '}'"
  | "':'"
  | "',' or '}'"
  | "',' or ']'"
  | 'the end'

function expectedAfterValue(openBrackets: readonly ('{' | '[')[]): Expectation {
  if (openBrackets.length === 0) return 'the end'
  return openBrackets.at(-1) === '{' ? "',' or '}'" : "',' or ']'"
}

function findStringError(content: string): { offset: number; reason: string } | undefined {
  for (const { index, 0: character } of content.matchAll(/[^ -\uffff]|\\(u[0-9a-fA-F]{4}|["\\/bfnrt])?/g)) {
    if (character === '\\') return { offset: index, reason: 'an escape sequence that does not exist' }
    if (character.length === 1) return { offset: index, reason: 'a control character that must be escaped' }
  }
  return undefined
}

function scalarLength(text: string, start: number): number {
  const scalar = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
  scalar.lastIndex = start
  return scalar.exec(text)?.[0].length ?? 0
}

/** Returns the offset after a string's closing quote, or the text's length if the string is not closed. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i + 1
    if (code === BACKSLASH) i++
  }
  return text.length
}

function formatPosition(text: string, offset: number): string {
  const precedingText = text.slice(0, offset)
  const line = precedingText.split('\n').length
  return `line ${line}, column ${offset - precedingText.lastIndexOf('\n')} (offset ${offset})`
}

function skipSpace(text: string, start: number): number {
  let i = start
  while (isSpace(text.charCodeAt(i))) i++
  return i
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
