// Parses JSON bodies strictly: valid UTF-8, bounded depth, errors with a position. JSON.parse does the parsing. One pass
// over the bytes before it measures the depth, so that hostile nesting never reaches a recursive function, and counts
// keys, so that a decoder that finds fewer keys knows that some are duplicates.
import { isUtf8 } from 'node:buffer'

/** Deeper than any API object, shallow enough for recursive code. Deeper bodies are rejected. */
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
  const { depth, keyCount } = measure(bytes, depthMax)
  if (depth > depthMax) throw new JsonError(`invalid JSON: objects and lists are nested more than ${depthMax} deep`)
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  try {
    return { value: JSON.parse(text), text, keyCount }
  } catch {
    throw new JsonError(`invalid JSON: ${firstMistake(text)}`)
  }
}

/** Number of key-value pairs in a JSON text. */
export const countKeys = (body: Uint8Array | string): number =>
  measure(typeof body === 'string' ? Buffer.from(body) : body, Number.POSITIVE_INFINITY).keyCount

/** Paths of duplicate keys in a valid JSON text: `['spec.x', 'spec.containers[0].name']`. */
export function findDuplicateKeys(text: string): string[] {
  const found = new Set<string>()
  const open: Level[] = []
  for (let i = 0; i < text.length && found.size < DUPLICATE_KEYS_MAX; i++) {
    const level = open.at(-1)
    switch (text[i]) {
      case '{':
        open.push({ keys: new Set(), at: '' })
        break
      case '[':
        open.push({ keys: undefined, at: 0 })
        break
      case '}':
      case ']':
        open.pop()
        break
      case ',':
        if (typeof level?.at === 'number') level.at += 1
        break
      case '"': {
        const end = endOfString(text, i)
        if (level?.keys && isKey(text, end)) {
          level.at = JSON.parse(text.slice(i, end)) as string
          if (level.keys.has(level.at)) found.add(pathOf(open))
          level.keys.add(level.at)
        }
        i = end - 1
      }
    }
  }
  return [...found]
}

/** An object or list that is open at the current position. */
interface Level {
  /** The keys seen so far; absent for a list. */
  readonly keys: Set<string> | undefined
  /** The current key or index. */
  at: string | number
}

const pathOf = (open: readonly Level[]): string =>
  open
    .map(({ at }) => (typeof at === 'number' ? `[${at}]` : `.${at}`))
    .join('')
    .replace(/^\./, '')

const isKey = (text: string, end: number): boolean => text.charCodeAt(skipSpace(text, end)) === COLON

function decodeUtf8(body: Uint8Array): string {
  if (!isUtf8(body)) throw new JsonError(`invalid JSON: the body is not valid UTF-8 at byte ${firstBadByte(body)}`)
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}

// Finds the longest valid prefix by bisection. Rare, so simplicity matters more than speed.
function firstBadByte(body: Uint8Array): number {
  let good = 0
  let bad = body.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    // A prefix may end inside a multi-byte character, so try up to three more bytes.
    const prefixIsValid = [0, 1, 2, 3].some((more) => isUtf8(body.subarray(0, Math.min(middle + more, body.length))))
    if (prefixIsValid) good = middle
    else bad = middle
  }
  return good
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

// Works on bytes: more than twice as fast as on characters, and no byte of a multi-byte character equals one of these.
function measure(bytes: Uint8Array, depthMax: number): { depth: number; keyCount: number } {
  const length = bytes.length
  let open = 0
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
        open++
        if (open > depth) depth = open
        if (depth > depthMax) break
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        open--
      }
    }
  }
  return { depth, keyCount }
}

// The messages of JSON.parse differ between Node.js versions and quote the body, which may contain a secret. So when
// JSON.parse fails, this scans the text again for the position and the reason.
function firstMistake(text: string): string {
  const open: ('{' | '[')[] = []
  let wanted: Wanted = 'a value'
  for (let i = skipSpace(text, 0); ; i = skipSpace(text, i)) {
    const found = text[i]
    if (wanted === 'the end' && found === undefined) return 'unknown position'
    if (found === '"' && wanted !== "':'" && wanted !== 'the end' && !wanted.startsWith("','")) {
      const end = endOfString(text, i)
      const mistake = mistakeInString(text.slice(i + 1, end - 1))
      if (mistake) return `${mistake.because} at ${placeOf(text, i + 1 + mistake.offset)}`
      if (text[end - 1] !== '"' || end - i < 2) return `a string that starts at ${placeOf(text, i)} does not end`
      i = end
      wanted = wanted.startsWith('a key') ? "':'" : afterValue(open)
    } else if (wanted.startsWith('a value') && (found === '{' || found === '[')) {
      open.push(found)
      i += 1
      wanted = found === '{' ? "a key or '}'" : "a value or ']'"
    } else if (wanted.startsWith('a value') && scalarLength(text, i) > 0) {
      i += scalarLength(text, i)
      wanted = afterValue(open)
    } else if (found !== undefined && (found === '}' || found === ']') && wanted.endsWith(`'${found}'`)) {
      open.pop()
      i += 1
      wanted = afterValue(open)
    } else if (found === ',' && wanted.startsWith("','")) {
      i += 1
      wanted = open.at(-1) === '{' ? 'a key' : 'a value'
    } else if (found === ':' && wanted === "':'") {
      i += 1
      wanted = 'a value'
    } else {
      return `expected ${wanted} but found ${found === undefined ? 'the end' : JSON.stringify(found)} at ${placeOf(text, i)}`
    }
  }
}

type Wanted = 'a value' | "a value or ']'" | 'a key' | "a key or '}'" | "':'" | "',' or '}'" | "',' or ']'" | 'the end'

function afterValue(open: readonly ('{' | '[')[]): Wanted {
  if (open.length === 0) return 'the end'
  return open.at(-1) === '{' ? "',' or '}'" : "',' or ']'"
}

function mistakeInString(inside: string): { offset: number; because: string } | undefined {
  for (const { index, 0: found } of inside.matchAll(/[^ -\uffff]|\\(u[0-9a-fA-F]{4}|["\\/bfnrt])?/g)) {
    if (found === '\\') return { offset: index, because: 'an escape sequence that does not exist' }
    if (found.length === 1) return { offset: index, because: 'a control character that must be escaped' }
  }
  return undefined
}

function scalarLength(text: string, start: number): number {
  const scalar = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
  scalar.lastIndex = start
  return scalar.exec(text)?.[0].length ?? 0
}

/** The offset after a string's closing quote, or the text's length if the string is not closed. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i + 1
    if (code === BACKSLASH) i++
  }
  return text.length
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  return `line ${line}, column ${offset - before.lastIndexOf('\n')} (offset ${offset})`
}

function skipSpace(text: string, start: number): number {
  let i = start
  while (isSpace(text.charCodeAt(i))) i++
  return i
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
