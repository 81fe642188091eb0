// Builds and sorts the rows of the nodes table: health, drivers, attach slots, storage, volumes and IO.
import type { DfClaim } from '../../protocol.ts'
import { type CsiNodeRow, type NodeRow, OUT_OF_SERVICE } from '../rows/cluster.ts'
import type { CapacityRow } from '../rows/storage.ts'
import type { StatusWord } from './claim-status.ts'
import type { ClaimView } from './claim-view.ts'
import { compareKeys } from './claim-view.ts'
import { matchesSegment } from './segments.ts'
import type { Identified } from './sorted-view.ts'
import type { SortOrder } from './url.ts'

interface DriverOnNode {
  readonly name: string
  readonly nodeId: string
  readonly usedSlots: number
  /** Undefined if the driver has no limit. */
  readonly slots: number | undefined
}

export interface NodeView extends Identified {
  readonly name: string
  readonly node: NodeRow
  readonly status: StatusWord
  /** Undefined if the node has no CSINode object. */
  readonly drivers: readonly DriverOnNode[] | undefined
  readonly claims: readonly ClaimView[]
  readonly promisedBytes: number
  /** The largest capacity that is reported for this node alone. Undefined if there is no such report. */
  readonly freeBytes: number | undefined
  /** Sums over the measured volumes; undefined if none is measured. */
  readonly iops: number | undefined
  readonly throughputBytes: number | undefined
}

interface NodeSources {
  readonly nodes: readonly NodeRow[]
  readonly csiNodes: Iterable<CsiNodeRow>
  readonly claims: Iterable<ClaimView>
  readonly capacities: Iterable<CapacityRow>
  /** A claim's driver, for counting slots. */
  driverOf(claim: ClaimView): string | undefined
}

export function buildNodeViews({ nodes, csiNodes, claims, capacities, driverOf }: NodeSources): NodeView[] {
  const csiNodesByName = new Map([...csiNodes].map((row) => [row.name, row]))
  const claimsByNode = new Map<string, ClaimView[]>()
  for (const claim of claims) {
    if (claim.node === undefined || claim.claim.volumeName === undefined) continue
    const list = claimsByNode.get(claim.node)
    if (list) list.push(claim)
    else claimsByNode.set(claim.node, [claim])
  }
  const freeByNode = freeStorageOf(nodes, capacities)
  return nodes.map((node) => {
    const nodeClaims = claimsByNode.get(node.name) ?? []
    const drivers = csiNodesByName.get(node.name)?.drivers.map(({ name, nodeId, slots }) => ({
      name,
      nodeId,
      slots,
      // A volume occupies a slot while a pod on the node uses it.
      usedSlots: nodeClaims.filter((claim) => claim.pods.length > 0 && driverOf(claim) === name).length,
    }))
    return {
      uid: node.uid,
      name: node.name,
      node,
      status: statusOfNode(node),
      drivers,
      claims: nodeClaims,
      promisedBytes: nodeClaims.reduce((sum, { claim }) => sum + (claim.capacityBytes ?? 0), 0),
      freeBytes: freeByNode.get(node.name),
      iops: sumOf(nodeClaims, ({ iops }) => iops),
      throughputBytes: sumOf(nodeClaims, ({ throughputBytes }) => throughputBytes),
    }
  })
}

export function statusOfNode({ ready, isUnschedulable, otherConditions, taints }: NodeRow): StatusWord {
  if (taints.some(({ key }) => key === OUT_OF_SERVICE)) return { word: 'Out of service', tone: 'warn' }
  if (ready === 'False') return { word: 'Not ready', tone: 'bad' }
  if (ready !== 'True') return { word: 'Unreachable', tone: 'bad' }
  if (otherConditions.length > 0) return { word: otherConditions[0]!, tone: 'warn' }
  if (isUnschedulable) return { word: 'Cordoned', tone: 'wait' }
  return { word: 'Ready', tone: 'ok' }
}

/** Returns the largest report of each node, not the sum, because the classes of a driver usually share a pool. */
function freeStorageOf(nodes: readonly NodeRow[], capacities: Iterable<CapacityRow>): Map<string, number> {
  const free = new Map<string, number>()
  for (const { segment, freeBytes } of capacities) {
    if (!segment || segment.length === 0 || freeBytes === undefined) continue
    const members = nodes.filter(({ labels }) => matchesSegment(segment, labels))
    if (members.length !== 1) continue
    const { name } = members[0]!
    free.set(name, Math.max(free.get(name) ?? 0, freeBytes))
  }
  return free
}

function sumOf(claims: readonly ClaimView[], read: (usage: DfClaim) => number | undefined): number | undefined {
  let sum: number | undefined
  for (const { usage } of claims) {
    const value = usage && read(usage)
    if (value !== undefined) sum = (sum ?? 0) + value
  }
  return sum
}

const SORT_KEYS: Readonly<Record<string, (row: NodeView) => string | number | undefined>> = {
  name: ({ name }) => name,
  status: ({ status }) => status.word,
  volumes: ({ claims }) => claims.length,
  pool: ({ freeBytes }) => freeBytes,
  iops: ({ iops }) => iops,
  throughput: ({ throughputBytes }) => throughputBytes,
  age: ({ node }) => node.createdMs,
}

export function compareNodes({ column, isDescending }: SortOrder): (a: NodeView, b: NodeView) => number {
  const key = SORT_KEYS[column] ?? SORT_KEYS.name!
  const sign = isDescending !== (column === 'age') ? -1 : 1
  return (a, b) => compareKeys(key(a), key(b), sign) || compareKeys(a.name, b.name, 1)
}
