// Computes the accessibility requirements of CreateVolume: the requisite and the preferred topologies of a volume. Reads
// nodes through NodeTopologies (node-topologies.ts) and stores the result in the ClaimTopology, so that every retry sends
// the same request.
//
//   binding    allowedTopologies  flags                  requisite                     preferred
//   delayed    any                strict                 the selected node's term      the same
//   delayed    none                                      every node's term             rotated to the selected node's
//   delayed    set                                       the allowed ones              rotated to the selected node's
//   immediate  set                                       the allowed ones              rotated by spreadIndex
//   immediate  none               immediateTopology      every node's term             rotated by spreadIndex
//   immediate  none               no immediateTopology   no requirement
import type { TopologySelectorTerm } from '../../../api/kinds/shared/references-schema.ts'
import { notReadyError, rescheduleError } from './preparation-error.ts'
import type { ClaimTopology } from './topology-cache.ts'

/** Topology segments, sorted by key. */
export type Term = readonly Segment[]
type Segment = readonly [key: string, value: string]

export interface TopologyRequirement {
  readonly requisite: readonly Term[]
  readonly preferred: readonly Term[]
}

/** The nodes and the topology keys of the driver on them. */
export interface NodeTopologies {
  /** Returns the topology keys of the driver on a node, or undefined if the node has no CSINode. */
  keysOf(node: string): readonly string[] | undefined
  labelsOf(node: string): Readonly<Record<string, string>> | undefined
  /** Returns the topology keys of any node on which the driver has some, or an empty list if there is none. */
  keysOfAnyNode(): readonly string[]
  /** Returns the distinct terms of all nodes that have all these labels, sorted. */
  termsOf(keys: readonly string[]): readonly Term[]
}

export interface TopologyQuery {
  readonly claimName: string
  readonly selectedNode: string | undefined
  readonly allowedTopologies: readonly TopologySelectorTerm[] | undefined
  readonly strict: boolean
  readonly immediate: boolean
  readonly nodes: NodeTopologies
  /** Takes precedence over the nodes and is updated. */
  readonly claimTopology: ClaimTopology
}

/** Returns undefined if there is no requirement. Throws a PreparationError if the topology is unknown or not allowed. */
export function topologyRequirement(query: TopologyQuery): TopologyRequirement | undefined {
  return query.selectedNode === undefined ? immediateRequirement(query) : delayedRequirement(query, query.selectedNode)
}

function delayedRequirement(query: TopologyQuery, node: string): TopologyRequirement | undefined {
  const { allowedTopologies = [], strict, nodes, claimTopology } = query
  const keys = selectedNodeKeys(node, nodes, claimTopology)
  const nodeTerm = selectedNodeTerm(node, keys, nodes, claimTopology)
  const allowedTerms = sortTerms(flattenTerms(allowedTopologies))
  if (strict) {
    if (allowedTopologies.length > 0 && !allowedTerms.some((term) => containsTerm(term, nodeTerm))) {
      throw notReadyError(
        `selected node "${node}" topology ${formatTerm(nodeTerm)} is not in allowed topologies: ${formatTerms(allowedTerms)}`,
      )
    }
    return { requisite: [nodeTerm], preferred: [nodeTerm] }
  }
  const requisite = allowedTopologies.length > 0 ? allowedTerms : termsOfNodes(keys, nodes, claimTopology)
  if (requisite.length === 0) return undefined // allowedTopologies contains only empty terms
  const firstIndex = requisite.findIndex((term) => containsTerm(term, nodeTerm))
  if (firstIndex < 0) {
    throw notReadyError(
      `topology ${formatTerm(nodeTerm)} from selected node "${node}" is not in requisite: ${formatTerms(requisite)}`,
    )
  }
  return { requisite, preferred: rotateTerms(requisite, firstIndex) }
}

function immediateRequirement(query: TopologyQuery): TopologyRequirement | undefined {
  const { claimName, allowedTopologies = [], immediate, nodes, claimTopology } = query
  let requisite: readonly Term[]
  if (allowedTopologies.length > 0) requisite = sortTerms(flattenTerms(allowedTopologies))
  else if (!immediate) return undefined
  else {
    claimTopology.keys ??= undefinedIfEmpty(nodes.keysOfAnyNode())
    if (!claimTopology.keys)
      throw notReadyError('no available topology found: the driver has reported topology keys on no node yet')
    requisite = termsOfNodes(claimTopology.keys, nodes, claimTopology)
  }
  if (requisite.length === 0) return undefined
  return { requisite, preferred: rotateTerms(requisite, spreadIndex(claimName, requisite.length)) }
}

function selectedNodeKeys(node: string, nodes: NodeTopologies, claimTopology: ClaimTopology): readonly string[] {
  // Keys without labels were never sent: the CSINode may have been deleted since, after its node.
  if (claimTopology.keys && claimTopology.nodeLabels) return claimTopology.keys
  const keys = nodes.keysOf(node)
  if (!keys)
    throw rescheduleError(`failed to get selected CSINode ${node}: csinodes.storage.k8s.io "${node}" not found`)
  if (keys.length === 0) throw notReadyError(`no topology key found for node ${node}: the driver may not run there yet`)
  claimTopology.keys = keys
  return keys
}

function selectedNodeTerm(
  node: string,
  keys: readonly string[],
  nodes: NodeTopologies,
  claimTopology: ClaimTopology,
): Term {
  const recordedTerm = claimTopology.nodeLabels && termOf(claimTopology.nodeLabels, keys)
  if (recordedTerm) return recordedTerm
  const labels = nodes.labelsOf(node)
  const term = labels && termOf(labels, keys)
  if (!term) {
    const problem = labels ? 'the labels of the node lack some of the keys' : 'the node does not exist'
    throw notReadyError(
      `the topology of node ${node} cannot be determined from the keys ${keys.join(', ')} of its CSINode: ${problem}`,
    )
  }
  claimTopology.nodeLabels = Object.fromEntries(term)
  return term
}

function termsOfNodes(keys: readonly string[], nodes: NodeTopologies, claimTopology: ClaimTopology): readonly Term[] {
  claimTopology.requisite ??= undefinedIfEmpty(nodes.termsOf(keys))
  if (!claimTopology.requisite) throw notReadyError(`topology keys ${keys.join(', ')} were not found on any node`)
  return claimTopology.requisite
}

const undefinedIfEmpty = <T>(list: readonly T[]): readonly T[] | undefined => (list.length > 0 ? list : undefined)

/** Returns the term of these labels, or undefined if a key is missing. */
export function termOf(labels: Readonly<Record<string, string>>, keys: readonly string[]): Term | undefined {
  if (!keys.every((key) => Object.hasOwn(labels, key))) return undefined
  return [...new Set(keys)].map((key): Segment => [key, labels[key]!]).sort(compareSegments)
}

/**
 * Returns each combination of one value per key, for all allowed topologies of a class.
 *   {zone: [a, b], rack: [1, 2]}  →  rack 1 zone a, rack 1 zone b, rack 2 zone a, rack 2 zone b
 */
export function flattenTerms(allowedTopologies: readonly TopologySelectorTerm[]): Term[] {
  return allowedTopologies.flatMap(({ matchLabelExpressions = [] }) => {
    if (matchLabelExpressions.length === 0) return []
    let terms: Segment[][] = [[]]
    for (const { key, values } of matchLabelExpressions) {
      terms = terms.flatMap((term) => values.map((value): Segment[] => [...term, [key, value]]))
      if (terms.length > FLATTENED_TERMS_MAX) {
        throw notReadyError(
          `allowedTopologies of the class describe more than ${FLATTENED_TERMS_MAX} combinations; list fewer values`,
        )
      }
    }
    return terms.map((term) => term.sort(compareSegments))
  })
}

/** Beyond this number, the topologies do not fit into a request, and an event reports the error. */
const FLATTENED_TERMS_MAX = 10_000

/** Returns the distinct terms in order of length, then keys and values. */
export function sortTerms(terms: readonly Term[]): Term[] {
  const termsByText = new Map(terms.map((term) => [JSON.stringify(term), term]))
  return [...termsByText.values()].sort(compareTerms)
}

function compareTerms(a: Term, b: Term): number {
  if (a.length !== b.length) return a.length - b.length
  for (const [i, segment] of a.entries()) {
    const order = compareSegments(segment, b[i]!)
    if (order !== 0) return order
  }
  return 0
}

const compareSegments = (a: Segment, b: Segment): number => compareBytes(a[0], b[0]) || compareBytes(a[1], b[1])

/** Compares bytes and not code units, as external-provisioner does. */
const compareBytes = (a: string, b: string): number => (a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b)))

/** Whether the term of the node contains all segments of the term. */
const containsTerm = (term: Term, nodeTerm: Term): boolean =>
  term.every(([key, value]) => nodeTerm.some(([otherKey, otherValue]) => otherKey === key && otherValue === value))

const rotateTerms = (terms: readonly Term[], firstIndex: number): Term[] => [
  ...terms.slice(firstIndex),
  ...terms.slice(0, firstIndex),
]

/**
 * Returns the index of the first preferred topology of a claim. The claims of a StatefulSet rotate over the topologies,
 * regardless of the name of the claim template:
 *   data-web-3 and logs-web-3  →  hash of `web`, plus 3        orders  →  hash of `orders`
 */
export function spreadIndex(claimName: string, topologyCount: number): number {
  const match = /^(.*)-([0-9]+)$/s.exec(claimName)
  const ordinal = Number(match?.[2] ?? 0)
  if (!match || ordinal > UINT32_MAX) return fnv1(claimName) % topologyCount
  const owner = match[1]!
  const hash = fnv1(owner.slice(owner.lastIndexOf('-') + 1))
  return ((hash + ordinal) >>> 0) % topologyCount
}

const UINT32_MAX = 2 ** 32 - 1
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** The 32-bit FNV-1 hash, as in external-provisioner. FNV-1a would spread claims differently. */
export function fnv1(text: string): number {
  let hash = FNV_OFFSET
  for (const byte of Buffer.from(text)) hash = (Math.imul(hash, FNV_PRIME) ^ byte) >>> 0
  return hash
}

const formatTerm = (term: Term): string => `{${term.map(([key, value]) => `${key}: ${value}`).join(', ')}}`

function formatTerms(terms: readonly Term[]): string {
  const text = terms.slice(0, PRINTED_TERMS_MAX).map(formatTerm).join(' ')
  return terms.length > PRINTED_TERMS_MAX ? `${text} and ${terms.length - PRINTED_TERMS_MAX} more` : text
}

const PRINTED_TERMS_MAX = 10
