// Finds the pools of a cluster. A pool is the storage of one driver in one topology segment, as CSIStorageCapacity objects report
// it.
import type { Stored } from '../../../api/kind.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import {
  formatLabelSelector,
  type LabelSelector,
  labelSelectorFromObject,
  matchesLabels,
} from '../../../api/selectors.ts'
import { bytesOf } from '../../space/bytes.ts'

export interface Pool {
  readonly driver: string
  /** The labels of the segment, or `all nodes`. */
  readonly segment: string
  readonly nodes: ReadonlySet<string>
  /** The available bytes that the driver reports for each class. Classes of one driver usually share the pool. */
  readonly freeBytesByClass: ReadonlyMap<string, number>
}

interface PoolSources {
  readonly capacities: readonly Readonly<CSIStorageCapacity>[]
  readonly classes: readonly Readonly<Stored<StorageClass>>[]
  readonly nodes: readonly Readonly<Stored<Node>>[]
}

const DRIVER_LABEL = 'csi.storage.k8s.io/drivername'
const ALL_NODES = 'all nodes'

export function findPools({ capacities, classes, nodes }: PoolSources): readonly Pool[] {
  const drivers = new Map(classes.map(({ metadata, provisioner }) => [metadata.name, provisioner]))
  const pools = new Map<string, Pool & { readonly freeBytesByClass: Map<string, number> }>()
  for (const { metadata, nodeTopology, storageClassName, capacity } of capacities) {
    const driver = drivers.get(storageClassName) ?? metadata.labels?.[DRIVER_LABEL]
    const selector = selectorOf(nodeTopology)
    if (driver === undefined || !selector) continue
    const segment = formatLabelSelector(selector) || ALL_NODES
    const key = `${driver} ${segment}`
    const pool = pools.get(key) ?? { driver, segment, nodes: nodesOf(selector, nodes), freeBytesByClass: new Map() }
    pools.set(key, pool)
    const freeBytes = bytesOf(capacity)
    if (freeBytes === undefined) continue
    pool.freeBytesByClass.set(storageClassName, (pool.freeBytesByClass.get(storageClassName) ?? 0) + freeBytes)
  }
  return [...pools.values()]
}

/** Returns the largest amount that the driver reports for a class, or undefined if it reports none. */
export const freeBytesOf = ({ freeBytesByClass }: Pool): number | undefined =>
  freeBytesByClass.size === 0 ? undefined : Math.max(...freeBytesByClass.values())

/** Returns the pool of a volume by its driver and the nodes that can reach it. Undefined `nodes` stand for all nodes. */
export type PoolOfVolume = (driver: string | undefined, nodes: readonly string[] | undefined) => Pool | undefined

/** The function returns undefined unless exactly one pool has all nodes of the volume. */
export function createPoolOfVolume(pools: readonly Pool[]): PoolOfVolume {
  const poolsByNode = new Map<string, Pool[]>()
  for (const pool of pools) {
    for (const node of pool.segment === ALL_NODES ? [ALL_NODES] : pool.nodes) {
      const key = `${pool.driver} ${node}`
      const poolsOfNode = poolsByNode.get(key)
      if (poolsOfNode) poolsOfNode.push(pool)
      else poolsByNode.set(key, [pool])
    }
  }
  return (driver, nodes) => {
    const poolsOf = (node: string) => poolsByNode.get(`${driver} ${node}`) ?? []
    const [firstNode] = nodes ?? []
    const segmentPools = firstNode === undefined ? [] : poolsOf(firstNode)
    const candidates = [
      ...segmentPools.filter((pool) => nodes?.every((node) => pool.nodes.has(node))),
      ...poolsOf(ALL_NODES),
    ]
    return candidates.length === 1 ? candidates[0] : undefined
  }
}

/** Returns undefined if the object has no topology, or an invalid one: no node can reach its storage. */
function selectorOf(nodeTopology: CSIStorageCapacity['nodeTopology']): LabelSelector | undefined {
  try {
    return nodeTopology && labelSelectorFromObject(nodeTopology)
  } catch {
    return undefined
  }
}

const nodesOf = (selector: LabelSelector, nodes: PoolSources['nodes']): ReadonlySet<string> =>
  new Set(nodes.filter(({ metadata }) => matchesLabels(selector, metadata.labels)).map(({ metadata }) => metadata.name))
