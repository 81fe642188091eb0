// Sets of field paths, as trees in the format in which objects store them (FieldsV1). Every key is a path element:
// `f:` a field, `k:` a list item by its keys, `v:` a list item by its value. A node without children is a member of the
// set; a node with children is a member only if it has the child '.'.
//   labels.app, labels, and spec.size    {f:labels: {'.': {}, f:app: {}}, f:spec: {f:size: {}}}
// Pure: sets are immutable and shared; an operation that changes nothing returns its input.

export interface FieldSet {
  readonly [element: string]: FieldSet
}

/** A set under construction. */
export interface DraftSet {
  [element: string]: FieldSet
}

export const ITSELF = '.'
/** A member without children. */
export const LEAF: FieldSet = Object.freeze({})
export const EMPTY: FieldSet = LEAF

export const isEmptySet = (set: FieldSet): boolean => {
  for (const _ in set) return false
  return true
}

/** Whether the node itself is a member of the set, and not only its descendants. */
export const isMember = (node: FieldSet): boolean => ITSELF in node || isEmptySet(node)

/** A node, or undefined if neither it nor a descendant is a member of the set. */
export function nodeOf(member: boolean, below: DraftSet): FieldSet | undefined {
  if (isEmptySet(below)) return member ? LEAF : undefined
  return member ? { [ITSELF]: LEAF, ...below } : below
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return b
  let both: DraftSet | undefined
  for (const element in b) {
    if (element === ITSELF) continue
    const mine = a[element]
    const theirs = b[element]!
    const node = mine ? unionOfNodes(mine, theirs) : theirs
    if (node === mine) continue
    both ??= { ...a }
    both[element] = node
  }
  return both ?? a
}

function unionOfNodes(a: FieldSet, b: FieldSet): FieldSet {
  const isNew = isMember(b) && !isMember(a)
  if (isEmptySet(b)) return isNew ? { [ITSELF]: LEAF, ...a } : a
  if (isEmptySet(a)) return ITSELF in b ? b : { [ITSELF]: LEAF, ...b }
  const both = union(a, b)
  return isNew ? { [ITSELF]: LEAF, ...both } : both
}

export function intersection(a: FieldSet, b: FieldSet): DraftSet {
  const shared: DraftSet = {}
  for (const element in a) {
    const mine = a[element]!
    const theirs = b[element]
    if (element === ITSELF || !theirs) continue
    const node = nodeOf(isMember(mine) && isMember(theirs), intersection(mine, theirs))
    if (node) shared[element] = node
  }
  return shared
}

/** The members of `a` that are not in `b`. A member of `b` removes that path only, not the paths below it. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  let changed = false
  const rest: DraftSet = {}
  for (const element in a) {
    if (element === ITSELF) continue
    const mine = a[element]!
    const theirs = b[element]
    const node = theirs ? differenceOfNodes(mine, theirs) : mine
    if (node) rest[element] = node
    if (node !== mine) changed = true
  }
  return changed ? rest : a
}

function differenceOfNodes(a: FieldSet, b: FieldSet): FieldSet | undefined {
  const below = difference(a, b)
  const stays = isMember(a) && !isMember(b)
  if (below === a && stays === isMember(a)) return a
  return nodeOf(stays, withoutItself(below))
}

export const isSubset = (a: FieldSet, b: FieldSet): boolean => isEmptySet(difference(a, b))

export function sameSet(a: FieldSet, b: FieldSet): boolean {
  return a === b || (isSubset(a, b) && isSubset(b, a))
}

/** All paths in the set, parents before their children. */
export function pathsOf(set: FieldSet, above: readonly string[] = []): (readonly string[])[] {
  const paths: (readonly string[])[] = []
  for (const element in set) {
    if (element === ITSELF) continue
    const node = set[element]!
    const path = [...above, element]
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

/** Adds a node at a path where the draft has none yet. */
export function insertNode(draft: DraftSet, path: readonly string[], node: FieldSet): void {
  let at = draft
  for (const element of path.slice(0, -1)) {
    at[element] ??= {}
    at = at[element] as DraftSet
  }
  at[path.at(-1)!] = node
}

function withoutItself(node: FieldSet): DraftSet {
  const { [ITSELF]: _, ...below } = node
  return below
}
