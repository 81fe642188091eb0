// JSON Patch (RFC 6902): applies a list of operations in order, all or none.
// Pure: the document and the patch are not modified; the result shares unchanged parts with them.
// The API server maps a PatchError to an HTTP status.
import { JSON_DEPTH_MAX } from '../json-scan.ts'
import { exceedsDepth, isJsonArray, isJsonObject, type JsonValue, jsonEquals, setOwnProperty } from '../json-value.ts'
import { PatchError, type PatchFailure } from './patch-error.ts'

export interface JsonPatchOptions {
  /** A patch with more operations is rejected. Default 10,000. */
  readonly operationsMax?: number
  /** Maximum size in JSON that all copy operations together may add. Default 3 MiB. */
  readonly copyBytesMax?: number
}

export function applyJsonPatch(document: JsonValue, patch: JsonValue, options: JsonPatchOptions = {}): JsonValue {
  const { operationsMax = 10_000, copyBytesMax = 3 * 1024 * 1024 } = options
  if (!isJsonArray(patch)) throw new PatchError('malformed', 'a JSON patch must be a list of operations')
  if (patch.length > operationsMax) {
    throw new PatchError(
      'too large',
      `the patch has ${patch.length} operations, and the allowed maximum in a JSON patch is ${operationsMax}`,
    )
  }
  const work: Work = { root: document, ours: new Set(), copyBytesLeft: copyBytesMax, copyBytesMax }
  patch.forEach((given, index) => {
    const operation = readOperation(given, index)
    try {
      apply(work, operation)
    } catch (error) {
      if (!(error instanceof OperationError)) throw error
      throw new PatchError(error.failure, `operation ${index} (${describe(operation)}): ${error.message}`)
    }
  })
  if (exceedsDepth(work.root, JSON_DEPTH_MAX)) {
    throw new PatchError('too large', `the patched document is nested more than ${JSON_DEPTH_MAX} deep`)
  }
  return work.root
}

// The operations

interface Work {
  root: JsonValue
  /** Containers created while applying this patch: they are modified in place, all others are copied first. */
  readonly ours: Set<object>
  copyBytesLeft: number
  readonly copyBytesMax: number
}

function apply(work: Work, operation: Operation): void {
  switch (operation.op) {
    case 'add':
      add(work, operation.path, operation.value)
      break
    case 'remove':
      remove(work, operation.path)
      break
    case 'replace':
      replace(work, operation.path, operation.value)
      break
    case 'move':
      move(work, operation.from, operation.path)
      break
    case 'copy':
      add(work, operation.path, duplicate(work, get(work, operation.from)))
      break
    case 'test':
      test(work, operation.path, operation.value)
  }
}

function add(work: Work, path: Pointer, value: JsonValue): void {
  if (path.length === 0) {
    work.root = value
    return
  }
  const { parent, key } = writableParent(work, path)
  if (Array.isArray(parent)) parent.splice(key === '-' ? parent.length : indexIn(parent, key, parent.length), 0, value)
  else setOwnProperty(parent, key, value)
}

function remove(work: Work, path: Pointer): JsonValue {
  if (path.length === 0) throw new OperationError('the whole document cannot be removed')
  const { parent, key } = writableParent(work, path)
  const removed = child(parent, key)
  if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else delete parent[key]
  return removed
}

function replace(work: Work, path: Pointer, value: JsonValue): void {
  if (path.length === 0) {
    work.root = value
    return
  }
  const { parent, key } = writableParent(work, path)
  child(parent, key) // must exist
  if (Array.isArray(parent)) parent[Number(key)] = value
  else setOwnProperty(parent, key, value)
}

function move(work: Work, from: Pointer, path: Pointer): void {
  if (from.length <= path.length && from.every((key, i) => key === path[i])) {
    get(work, from) // must exist, even if there is nothing to do
    if (from.length === path.length) return
    throw new OperationError('a value cannot be moved into itself')
  }
  add(work, path, remove(work, from))
}

// Clients assert that a field is absent by testing it against null.
function test(work: Work, path: Pointer, value: JsonValue): void {
  const parent = path.length === 0 ? undefined : get(work, path.slice(0, -1))
  if (value === null && isJsonObject(parent) && !Object.hasOwn(parent, path.at(-1)!)) return
  const found = get(work, path)
  checkDepth(found)
  if (!jsonEquals(found, value)) throw new OperationError('the value differs')
}

/** A deep copy, so that later changes of one do not affect the other. */
function duplicate(work: Work, value: JsonValue): JsonValue {
  checkDepth(value)
  const text = JSON.stringify(value)
  work.copyBytesLeft -= Buffer.byteLength(text)
  if (work.copyBytesLeft < 0) {
    throw new OperationError(`copying would add more than the allowed ${work.copyBytesMax} bytes`, 'too large')
  }
  return JSON.parse(text)
}

function checkDepth(value: JsonValue): void {
  if (!exceedsDepth(value, JSON_DEPTH_MAX)) return
  throw new OperationError(`the value is nested more than ${JSON_DEPTH_MAX} deep`, 'too large')
}

// Resolving pointers

type Container = JsonValue[] | { [key: string]: JsonValue }

function get(work: Work, path: Pointer): JsonValue {
  return path.reduce((value: JsonValue, key) => child(value, key), work.root)
}

function child(parent: JsonValue | Container, key: string): JsonValue {
  if (isJsonArray(parent)) return parent[indexIn(parent, key, parent.length - 1)]!
  if (!isJsonObject(parent))
    throw new OperationError(`there is no ${shown(key)}: what should contain it is not an object or list`)
  if (!Object.hasOwn(parent, key)) throw new OperationError(`there is no ${shown(key)}`)
  return parent[key]!
}

/** The container of the value at a path. Copies all containers on the path, so that they can be modified. */
function writableParent(work: Work, path: Pointer): { parent: Container; key: string } {
  work.root = writable(work, work.root, path[0]!)
  let parent = work.root as Container
  for (let depth = 1; depth < path.length; depth++) {
    const key = path[depth - 1]!
    const inner = writable(work, child(parent, key), path[depth]!)
    if (Array.isArray(parent)) parent[Number(key)] = inner
    else setOwnProperty(parent, key, inner)
    parent = inner as Container
  }
  return { parent, key: path.at(-1)! }
}

function writable(work: Work, value: JsonValue, key: string): JsonValue {
  if (typeof value !== 'object' || value === null) {
    throw new OperationError(`there is no ${shown(key)}: what should contain it is not an object or list`)
  }
  if (work.ours.has(value)) return value
  const copy = isJsonArray(value) ? [...value] : { ...value }
  work.ours.add(copy)
  return copy
}

function indexIn(list: readonly JsonValue[], key: string, indexMax: number): number {
  if (!/^(0|[1-9][0-9]*)$/.test(key)) throw new OperationError(`${shown(key)} is not an index of a list`)
  if (Number(key) > indexMax) throw new OperationError(`there is no item ${key} in a list of ${list.length}`)
  return Number(key)
}

// Parsing the patch

type Pointer = readonly string[]

type Operation =
  | { op: 'add' | 'replace' | 'test'; path: Pointer; value: JsonValue }
  | { op: 'remove'; path: Pointer }
  | { op: 'move' | 'copy'; path: Pointer; from: Pointer }

function readOperation(given: JsonValue, index: number): Operation {
  const malformed = (because: string) => new PatchError('malformed', `operation ${index}: ${because}`)
  if (!isJsonObject(given)) throw malformed('an operation must be an object')
  const member = (key: string) => (Object.hasOwn(given, key) ? given[key] : undefined)
  const pointer = (key: 'path' | 'from'): Pointer => {
    const text = member(key)
    if (typeof text !== 'string') throw malformed(`"${key}" must be a string`)
    const tokens = parsePointer(text)
    if (!tokens) throw malformed(`"${key}" must be a JSON pointer, empty or starting with "/", not ${shown(text)}`)
    return tokens
  }
  const op = member('op')
  switch (op) {
    case 'add':
    case 'replace':
    case 'test': {
      const value = member('value')
      if (value === undefined) throw malformed(`"value" is missing, and "${op}" needs one`)
      return { op, path: pointer('path'), value }
    }
    case 'remove':
      return { op, path: pointer('path') }
    case 'move':
    case 'copy':
      return { op, path: pointer('path'), from: pointer('from') }
    default:
      throw malformed(`"op" must be one of add, remove, replace, move, copy, test, not ${shown(op)}`)
  }
}

/** `/metadata/labels/a~1b` is `['metadata', 'labels', 'a/b']`; undefined if the text is not a JSON pointer. */
export function parsePointer(text: string): string[] | undefined {
  if (text === '') return []
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

export const formatPointer = (path: Pointer): string =>
  path.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Why an operation cannot be applied; applyJsonPatch adds its index. */
class OperationError extends Error {
  readonly failure: PatchFailure

  constructor(message: string, failure: PatchFailure = 'inapplicable') {
    super(message)
    this.failure = failure
  }
}

function describe(operation: Operation): string {
  const from = 'from' in operation ? ` ${shown(formatPointer(operation.from))} to` : ''
  return `${operation.op}${from} ${shown(formatPointer(operation.path))}`
}

const SHOWN_LENGTH_MAX = 200 // longer values are truncated in messages
const shown = (value: JsonValue | undefined): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text
}
