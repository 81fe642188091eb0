// Formats, parses and orders the elements of field paths. Field sets and messages spell them differently:
//   f:containers  k:{"name":"web"}  f:image    .containers[name="web"].image
import { isRecord } from '../decode.ts'
import type { JsonValue } from '../json-value.ts'

export const fieldElement = (name: string): string => `f:${name}`
export const valueElement = (value: JsonValue): string => `v:${JSON.stringify(value)}`

/** Formats the key fields of a list item, which must be in alphabetical order. */
export function keyElement(keys: readonly (readonly [string, JsonValue])[]): string {
  const fields = keys.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return `k:{${fields.join(',')}}`
}

/** Returns the canonical form of an element, or undefined if it is invalid. */
export function canonicalElement(element: string): string | undefined {
  const content = element.slice(2)
  switch (element.slice(0, 2)) {
    case 'f:':
      return element
    case 'i:':
      return /^-?\d{1,9}$/.test(content) ? `i:${Number(content)}` : undefined
    case 'v:': {
      const value = tryParseJson(content)
      return value === undefined ? undefined : valueElement(value)
    }
    case 'k:': {
      const keys = tryParseJson(content)
      if (typeof keys !== 'object' || keys === null || Array.isArray(keys)) return undefined
      return keyElement(Object.entries(keys).sort(([a], [b]) => (a < b ? -1 : 1)))
    }
    default:
      return undefined
  }
}

/** The order of elements: the node itself, fields, items by keys, items by value, items by index. */
const ELEMENT_TYPES = '.fkvi'
const rankOf = (element: string): number => ELEMENT_TYPES.indexOf(element[0]!)

/** An element with the value by which it is compared, so that a sort parses each element once. */
export interface SortableElement {
  readonly element: string
  readonly rank: number
  /** Null for elements that are compared as text. */
  readonly value: JsonValue
}

export function sortableElement(element: string): SortableElement {
  const rank = rankOf(element)
  return { element, rank, value: rank <= 1 ? null : (tryParseJson(element.slice(2)) ?? null) }
}

/** Compares elements as Kubernetes sorts them: names and texts as text, numbers by their value. */
export function compareElements(a: SortableElement, b: SortableElement): number {
  if (a.rank !== b.rank) return a.rank - b.rank
  return a.rank <= 1 ? compareText(a.element, b.element) : compareValues(a.value, b.value)
}

/** Whether `a` is not after `b` in the order of compareElements. Allocates nothing for fields. */
export function isInOrder(a: string, b: string): boolean {
  const rank = rankOf(a)
  if (rank !== rankOf(b)) return rank < rankOf(b)
  return rank <= 1 ? a <= b : compareElements(sortableElement(a), sortableElement(b)) <= 0
}

function compareValues(a: JsonValue, b: JsonValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (isRecord(a) && isRecord(b)) {
    const [fieldsA, fieldsB] = [Object.entries(a), Object.entries(b)]
    for (const [index, [name, value]] of fieldsA.entries()) {
      const otherField = fieldsB[index]
      if (!otherField) return 1
      const order = compareText(name, otherField[0]) || compareValues(value, otherField[1])
      if (order !== 0) return order
    }
    return fieldsA.length - fieldsB.length
  }
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  return compareText(JSON.stringify(a), JSON.stringify(b))
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export const describePath = (path: readonly string[]): string => path.map(describeElement).join('')

function describeElement(element: string): string {
  const content = element.slice(2)
  switch (element.slice(0, 2)) {
    case 'f:':
      return `.${content}`
    case 'v:':
      return `[=${content}]`
    case 'k:': {
      const keys = Object.entries(tryParseJson(content) ?? {})
      return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
    }
    default:
      return `[${content}]`
  }
}

function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
