// Applies a JSON Patch (RFC 6902): a list of operations in order, all or none. As in the Kubernetes API server, and unlike the
// RFC, `replace` also sets an absent key of an object, `test` accepts an absent key as null, and a negative index counts from the
// end of a list.
// Pure: the document and the patch are not modified; the result shares unchanged parts with them.

import { isRecord } from '../decode.ts'
import { exceedsDepth, isJsonArray, type JsonValue, jsonEquals, setOwnProperty } from '../json-value.ts'
import { JSON_DEPTH_MAX } from '../parse-json.ts'
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
  const state: PatchState = {
    root: document,
    writableContainers: new Set(),
    remainingCopyBytes: copyBytesMax,
    copyBytesMax,
  }
  patch.forEach((item, index) => {
    const operation = parseOperation(item, index)
    try {
      applyOperation(state, operation)
    } catch (error) {
      if (!(error instanceof OperationError)) throw error
      throw new PatchError(error.failure, `operation ${index} (${describeOperation(operation)}): ${error.message}`)
    }
  })
  if (exceedsDepth(state.root, JSON_DEPTH_MAX)) {
    throw new PatchError('too large', `the patched document is nested more than ${JSON_DEPTH_MAX} levels deep`)
  }
  return state.root
}

// The operations

interface PatchState {
  root: JsonValue
  /** Objects and lists that this patch created. They are modified in place; all others are copied first. */
  readonly writableContainers: Set<object>
  remainingCopyBytes: number
  readonly copyBytesMax: number
}

function applyOperation(state: PatchState, operation: Operation): void {
  switch (operation.op) {
    case 'add':
      addValue(state, operation.path, operation.value)
      break
    case 'remove':
      removeValue(state, operation.path)
      break
    case 'replace':
      replaceValue(state, operation.path, operation.value)
      break
    case 'move':
      moveValue(state, operation.from, operation.path)
      break
    case 'copy':
      addValue(state, operation.path, deepCopy(state, getValue(state, operation.from)))
      break
    case 'test':
      testValue(state, operation.path, operation.value)
  }
}

function addValue(state: PatchState, path: Pointer, value: JsonValue): void {
  if (path.length === 0) {
    state.root = value
    return
  }
  const { parent, key } = writableParent(state, path)
  if (Array.isArray(parent))
    parent.splice(key === '-' ? parent.length : parseIndex(parent, key, parent.length), 0, value)
  else setOwnProperty(parent, key, value)
}

function removeValue(state: PatchState, path: Pointer): JsonValue {
  if (path.length === 0) throw new OperationError('the whole document cannot be removed')
  const { parent, key } = writableParent(state, path)
  const removedValue = getChild(parent, key)
  if (Array.isArray(parent)) parent.splice(parseIndex(parent, key, parent.length - 1), 1)
  else delete parent[key]
  return removedValue
}

function replaceValue(state: PatchState, path: Pointer, value: JsonValue): void {
  if (path.length === 0) {
    state.root = value
    return
  }
  const { parent, key } = writableParent(state, path)
  if (Array.isArray(parent)) parent[parseIndex(parent, key, parent.length - 1)] = value
  else setOwnProperty(parent, key, value)
}

function moveValue(state: PatchState, fromPath: Pointer, path: Pointer): void {
  if (fromPath.length <= path.length && fromPath.every((key, i) => key === path[i])) {
    getValue(state, fromPath) // throws if the value does not exist
    if (fromPath.length === path.length) return
    throw new OperationError('a value cannot be moved into itself')
  }
  addValue(state, path, removeValue(state, fromPath))
}

// A test for null succeeds if the field is absent, because clients use it as an assertion of absence.
function testValue(state: PatchState, path: Pointer, value: JsonValue): void {
  const parent = path.length === 0 ? undefined : getValue(state, path.slice(0, -1))
  if (value === null && isRecord(parent) && !Object.hasOwn(parent, path.at(-1)!)) return
  const actualValue = getValue(state, path)
  checkDepth(actualValue)
  if (!jsonEquals(actualValue, value)) throw new OperationError('the value differs')
}

/** Returns a deep copy, so that later operations on the copy do not affect the original. */
function deepCopy(state: PatchState, value: JsonValue): JsonValue {
  checkDepth(value)
  const text = JSON.stringify(value)
  state.remainingCopyBytes -= Buffer.byteLength(text)
  if (state.remainingCopyBytes < 0) {
    throw new OperationError(`copying would add more than the allowed ${state.copyBytesMax} bytes`, 'too large')
  }
  return JSON.parse(text)
}

function checkDepth(value: JsonValue): void {
  if (!exceedsDepth(value, JSON_DEPTH_MAX)) return
  throw new OperationError(`the value is nested more than ${JSON_DEPTH_MAX} levels deep`, 'too large')
}

// Resolving pointers

type Container = JsonValue[] | { [key: string]: JsonValue }

function getValue(state: PatchState, path: Pointer): JsonValue {
  return path.reduce((value: JsonValue, key) => getChild(value, key), state.root)
}

function getChild(parent: JsonValue | Container, key: string): JsonValue {
  if (isJsonArray(parent)) return parent[parseIndex(parent, key, parent.length - 1)]!
  if (!isRecord(parent)) throw new OperationError(`there is no ${quote(key)}: its parent is not an object or list`)
  if (!Object.hasOwn(parent, key)) throw new OperationError(`there is no ${quote(key)}`)
  return parent[key]!
}

/** Returns the object or list that contains the value at a path. Copies those on the path, so that they can be modified. */
function writableParent(state: PatchState, path: Pointer): { parent: Container; key: string } {
  state.root = ensureWritable(state, state.root, path[0]!)
  let parent = state.root as Container
  for (let depth = 1; depth < path.length; depth++) {
    const key = path[depth - 1]!
    const innerValue = ensureWritable(state, getChild(parent, key), path[depth]!)
    if (Array.isArray(parent)) parent[parseIndex(parent, key, parent.length - 1)] = innerValue
    else setOwnProperty(parent, key, innerValue)
    parent = innerValue as Container
  }
  return { parent, key: path.at(-1)! }
}

function ensureWritable(state: PatchState, value: JsonValue, key: string): JsonValue {
  if (typeof value !== 'object' || value === null) {
    throw new OperationError(`there is no ${quote(key)}: its parent is not an object or list`)
  }
  if (state.writableContainers.has(value)) return value
  const copy = isJsonArray(value) ? [...value] : { ...value }
  state.writableContainers.add(copy)
  return copy
}

/** Parses an index; -1 is `indexMax`. */
function parseIndex(list: readonly JsonValue[], key: string, indexMax: number): number {
  if (!/^(0|-?[1-9][0-9]*)$/.test(key)) throw new OperationError(`${quote(key)} is not an index of a list`)
  const index = key.startsWith('-') ? Number(key) + indexMax + 1 : Number(key)
  if (index < 0 || index > indexMax) throw new OperationError(`there is no item ${key} in a list of ${list.length}`)
  return index
}

// Parsing the patch

type Pointer = readonly string[]

type Operation =
  | { op: 'add' | 'replace' | 'test'; path: Pointer; value: JsonValue }
  | { op: 'remove'; path: Pointer }
  | { op: 'move' | 'copy'; path: Pointer; from: Pointer }

function parseOperation(item: JsonValue, index: number): Operation {
  const createMalformedError = (reason: string) => new PatchError('malformed', `operation ${index}: ${reason}`)
  if (!isRecord(item)) throw createMalformedError('an operation must be an object')
  const getMember = (key: string) => (Object.hasOwn(item, key) ? item[key] : undefined)
  const getPointer = (key: 'path' | 'from'): Pointer => {
    const text = getMember(key)
    if (typeof text !== 'string') throw createMalformedError(`"${key}" must be a string`)
    const tokens = parsePointer(text)
    if (!tokens)
      throw createMalformedError(`"${key}" must be a JSON pointer, empty or starting with "/", not ${quote(text)}`)
    return tokens
  }
  const op = getMember('op')
  switch (op) {
    case 'add':
    case 'replace':
    case 'test': {
      const value = getMember('value')
      if (value === undefined) throw createMalformedError(`"value" is missing, and "${op}" needs one`)
      return { op, path: getPointer('path'), value }
    }
    case 'remove':
      return { op, path: getPointer('path') }
    case 'move':
    case 'copy':
      return { op, path: getPointer('path'), from: getPointer('from') }
    default:
      throw createMalformedError(`"op" must be one of add, remove, replace, move, copy, test, not ${quote(op)}`)
  }
}

/** Parses `/metadata/labels/a~1b` to `['metadata', 'labels', 'a/b']`. Returns undefined if the text is not a JSON pointer. */
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

/** The error of one operation. applyJsonPatch adds the operation's index. */
class OperationError extends Error {
  readonly failure: PatchFailure

  constructor(message: string, failure: PatchFailure = 'inapplicable') {
    super(message)
    this.failure = failure
  }
}

function describeOperation(operation: Operation): string {
  const fromText = 'from' in operation ? ` ${quote(formatPointer(operation.from))} to` : ''
  return `${operation.op}${fromText} ${quote(formatPointer(operation.path))}`
}

const QUOTED_LENGTH_MAX = 200 // longer values are truncated in messages
const quote = (value: JsonValue | undefined): string => {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text
}
