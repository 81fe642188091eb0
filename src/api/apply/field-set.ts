// Sets of field paths, as trees in the format in which objects store them (FieldsV1). Every key is a path element:
// `f:` a field, `k:` a list item by its keys, `v:` a list item by its value, `i:` a list item by its index. A node without
// children is a member of the set; a node with children is a member only if it has the child '.'.
//   labels.app, labels, and spec.size    {f:labels: {'.': {}, f:app: {}}, f:spec: {f:size: {}}}
// Pure: sets are immutable and shared.
import { compareElements, isInOrder, sortableElement } from './path-element.ts'

export interface FieldSet {
  readonly [element: string]: FieldSet
}

/** A set under construction. */
export interface DraftSet {
  [element: string]: FieldSet
}

export const SELF_ELEMENT = '.'
/** A member without children. */
export const LEAF: FieldSet = Object.freeze({})
export const EMPTY_SET: FieldSet = LEAF

export const isEmptySet = (set: FieldSet): boolean => {
  for (const _ in set) return false
  return true
}

/** Returns whether the node itself is a member of the set, and not only its descendants. */
export const isMember = (node: FieldSet): boolean => SELF_ELEMENT in node || isEmptySet(node)

/** Returns a node, or undefined if neither the node nor a descendant is a member of the set. */
export function nodeOf(includesSelf: boolean, children: DraftSet): FieldSet | undefined {
  if (isEmptySet(children)) return includesSelf ? LEAF : undefined
  return includesSelf ? { [SELF_ELEMENT]: LEAF, ...children } : children
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return b
  let mergedSet: DraftSet | undefined
  for (const element in b) {
    if (element === SELF_ELEMENT) continue
    const nodeA = a[element]
    const nodeB = b[element]!
    const node = nodeA ? unionOfNodes(nodeA, nodeB) : nodeB
    if (node === nodeA) continue
    mergedSet ??= { ...a }
    mergedSet[element] = node
  }
  return mergedSet ?? a
}

function unionOfNodes(a: FieldSet, b: FieldSet): FieldSet {
  const addsSelf = isMember(b) && !isMember(a)
  if (isEmptySet(b)) return addsSelf ? { [SELF_ELEMENT]: LEAF, ...a } : a
  if (isEmptySet(a)) return SELF_ELEMENT in b ? b : { [SELF_ELEMENT]: LEAF, ...b }
  const mergedSet = union(a, b)
  return addsSelf ? { [SELF_ELEMENT]: LEAF, ...mergedSet } : mergedSet
}

export function intersection(a: FieldSet, b: FieldSet): DraftSet {
  const sharedSet: DraftSet = {}
  for (const element in a) {
    const nodeA = a[element]!
    const nodeB = b[element]
    if (element === SELF_ELEMENT || !nodeB) continue
    const node = nodeOf(isMember(nodeA) && isMember(nodeB), intersection(nodeA, nodeB))
    if (node) sharedSet[element] = node
  }
  return sharedSet
}

/** Returns the members of `a` that are not in `b`. A member of `b` removes only that path, not the paths below it. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  let hasChanged = false
  const remainingSet: DraftSet = {}
  for (const element in a) {
    if (element === SELF_ELEMENT) continue
    const nodeA = a[element]!
    const nodeB = b[element]
    const node = nodeB ? differenceOfNodes(nodeA, nodeB) : nodeA
    if (node) remainingSet[element] = node
    if (node !== nodeA) hasChanged = true
  }
  return hasChanged ? remainingSet : a
}

function differenceOfNodes(a: FieldSet, b: FieldSet): FieldSet | undefined {
  const children = difference(a, b)
  const isStillMember = isMember(a) && !isMember(b)
  if (children === a && isStillMember === isMember(a)) return a
  return nodeOf(isStillMember, withoutSelf(children))
}

/** Returns the set with its elements in the order of compareElements, as Kubernetes stores it. Returns a sorted set unchanged. */
export function sortSet(set: FieldSet): FieldSet {
  if (isSortedSet(set)) return set
  const sortedSet: DraftSet = {}
  for (const { element } of Object.keys(set).map(sortableElement).sort(compareElements)) {
    sortedSet[element] = sortSet(set[element]!)
  }
  return sortedSet
}

/** Whether the elements of all levels are sorted. */
function isSortedSet(set: FieldSet): boolean {
  if (set === LEAF) return true
  let previousElement: string | undefined
  for (const element in set) {
    if (previousElement !== undefined && !isInOrder(previousElement, element)) return false
    if (!isSortedSet(set[element]!)) return false
    previousElement = element
  }
  return true
}

export const isSubset = (a: FieldSet, b: FieldSet): boolean => isEmptySet(difference(a, b))

export function sameSet(a: FieldSet, b: FieldSet): boolean {
  return a === b || (isSubset(a, b) && isSubset(b, a))
}

/** Returns all paths in the set, parents before their children. */
export function pathsOf(set: FieldSet, parentPath: readonly string[] = []): (readonly string[])[] {
  const paths: (readonly string[])[] = []
  for (const element in set) {
    if (element === SELF_ELEMENT) continue
    const node = set[element]!
    const path = [...parentPath, element]
    if (isMember(node)) paths.push(path)
    paths.push(...pathsOf(node, path))
  }
  return paths
}

export function hasPath(set: FieldSet, path: readonly string[]): boolean {
  let node: FieldSet | undefined = set
  for (const element of path) {
    node = node[element]
    if (!node) return false
  }
  return path.length > 0 && isMember(node)
}

/** Inserts a node at a path that the draft does not contain yet. */
export function insertNode(draft: DraftSet, path: readonly string[], node: FieldSet): void {
  let parent = draft
  for (const element of path.slice(0, -1)) {
    parent[element] ??= {}
    parent = parent[element] as DraftSet
  }
  parent[path.at(-1)!] = node
}

export function withoutSelf(node: FieldSet): DraftSet {
  const { [SELF_ELEMENT]: _, ...children } = node
  return children
}
