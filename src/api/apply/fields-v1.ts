// Decodes the field sets that clients send: checks their structure and converts path elements to canonical form, so that
// equal sets have equal keys. Field sets in the store are already canonical.
import { isRecord } from '../decode.ts'
import {
  type DraftSet,
  type FieldSet,
  isEmptySet,
  LEAF,
  nodeOf,
  SELF_ELEMENT,
  union,
  withoutSelf,
} from './field-set.ts'
import { canonicalElement } from './path-element.ts'

const DEPTH_MAX = 100 // far deeper than any declared kind

/** Returns the set, or undefined if the value is not a field set. */
export function decodeFieldsV1(value: unknown): FieldSet | undefined {
  const children = decodeNode(value, 0)
  return children && withoutSelf(children)
}

function decodeNode(value: unknown, depth: number): DraftSet | undefined {
  if (!isRecord(value) || depth > DEPTH_MAX) return undefined
  const set: DraftSet = {}
  for (const [key, inner] of Object.entries(value)) {
    if (key === SELF_ELEMENT) {
      set[SELF_ELEMENT] = LEAF
      continue
    }
    const element = canonicalElement(key)
    const children = decodeNode(inner, depth + 1)
    if (element === undefined || !children) return undefined
    const node = nodeOf(SELF_ELEMENT in children || isEmptySet(children), withoutSelf(children))
    if (node) addNode(set, element, node)
  }
  return set
}

/** Adds a node. Two keys of a client can have one canonical form: the set then contains the members of both. */
function addNode(set: DraftSet, element: string, node: FieldSet): void {
  const existingNode = set[element]
  set[element] = existingNode ? union({ [element]: existingNode }, { [element]: node })[element]! : node
}
