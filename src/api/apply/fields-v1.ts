// Reads field sets that clients send: checks that they are field sets, and writes their elements the one way this
// server does, so that a set is equal to another exactly when it says the same. What this server stores needs neither.
import { isJsonObject } from '../json-value.ts'
import { type DraftSet, type FieldSet, ITSELF, isEmptySet, LEAF, nodeOf } from './field-set.ts'
import { canonicalElement } from './path-element.ts'

const DEPTH_MAX = 100 // no object of ours is nearly as deep

/** The set, or undefined if the value is none. */
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
