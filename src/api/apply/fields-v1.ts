// Decodes the field sets that clients send: checks their structure and rewrites path elements in canonical form, so that
// equal sets have equal keys. Field sets read from the store are canonical already.
import { isJsonObject } from '../json-value.ts'
import { type DraftSet, type FieldSet, ITSELF, isEmptySet, LEAF, nodeOf } from './field-set.ts'
import { canonicalElement } from './path-element.ts'

const DEPTH_MAX = 100 // far deeper than any declared kind

/** The set, or undefined if the value is not a field set. */
export function decodeFieldsV1(value: unknown): FieldSet | undefined {
  const below = decodeBelow(value, 0)
  return below && withoutMark(below)
}

function decodeBelow(value: unknown, depth: number): DraftSet | undefined {
  if (!isJsonObject(value) || depth > DEPTH_MAX) return undefined
  const set: DraftSet = {}
  for (const [key, inner] of Object.entries(value)) {
    if (key === ITSELF) {
      set[ITSELF] = LEAF
      continue
    }
    const element = canonicalElement(key)
    const below = decodeBelow(inner, depth + 1)
    if (element === undefined || !below) return undefined
    const node = nodeOf(ITSELF in below || isEmptySet(below), withoutMark(below))
    if (node) set[element] = node
  }
  return set
}

function withoutMark({ [ITSELF]: _, ...below }: FieldSet): DraftSet {
  return below
}
