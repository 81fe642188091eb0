// Computes what remains after a simulation: the resources of each node, and the capacity of each class and segment.
import { formatQuantity, quantityFromBytes } from '../../api/quantity.ts'
import { formatLabelSelector, type LabelSelector, labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'
import { keyOfObject } from '../../client/index.ts'
import type { PodPlacer } from '../../scheduler/index.ts'
import type { SnapshotCaches } from '../snapshot-caches.ts'
import type { RemainingClass, RemainingNode, RemainingSegment } from './result.ts'

export function remainingNodes({ nodes }: PodPlacer, newNodes: ReadonlySet<string>): RemainingNode[] {
  return nodes.map(({ name, pods, allocatable, requested }) => {
    const left = [...(allocatable ?? [])].map(([resource, amount]): [string, string] => {
      const used = resource === 'pods' ? pods.size : (requested.get(resource) ?? 0)
      return [resource, formatAmount(resource, amount - used)]
    })
    return { name, isNew: newNodes.has(name), pods: pods.size, left: Object.fromEntries(left) }
  })
}

/** CPU is counted in millicores, all other resources in whole units. */
function formatAmount(resource: string, amount: number): string {
  if (resource === 'cpu') return amount % 1_000 === 0 ? String(amount / 1_000) : `${amount}m`
  const isBytes = resource === 'memory' || resource.includes('storage') || resource.startsWith('hugepages-')
  return isBytes ? formatBytes(BigInt(Math.trunc(amount))) : String(amount)
}

const formatBytes = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))

interface Segment extends RemainingSegment {
  readonly className: string
  readonly freeBytes: bigint
}

/** Returns the classes with capacity reports about existing nodes, sorted by name. */
export function remainingClasses(placer: PodPlacer, { capacities }: SnapshotCaches): RemainingClass[] {
  const freeByReport = placer.freeCapacity()
  const selectsNode = createNodeMatcher(placer)
  const segments = (capacities?.list() ?? []).flatMap((object): Segment[] => {
    const freeBytes = freeByReport.get(keyOfObject(object))
    if (freeBytes === undefined || !object.nodeTopology) return []
    const selector = labelSelectorFromObject(object.nodeTopology)
    if (!selectsNode(selector)) return []
    const segment: Segment = {
      className: object.storageClassName,
      report: keyOfObject(object),
      topology: formatLabelSelector(selector),
      capacity: object.capacity ?? '',
      free: formatBytes(freeBytes),
      freeBytes,
    }
    return [segment]
  })
  const classNames = [...new Set(segments.map(({ className }) => className))].sort()
  return classNames.map((name) => {
    const ofClass = segments.filter(({ className }) => className === name)
    const sizes = ofClass.map(({ freeBytes }) => freeBytes).sort((a, b) => Number(b - a))
    return {
      name,
      free: formatBytes(sizes.reduce((sum, bytes) => sum + bytes, 0n)),
      largestFree: formatBytes(sizes[0] ?? 0n),
      segments: ofClass.map(({ className: _, freeBytes: __, ...segment }) => segment),
    }
  })
}

/** Returns a function that checks whether a selector selects a node. For one label, the usual topology, it is a lookup. */
function createNodeMatcher({ nodes }: PodPlacer): (selector: LabelSelector) => boolean {
  const values = new Set(nodes.flatMap(({ labels }) => Object.entries(labels).map(([key, value]) => `${key}=${value}`)))
  return (selector) => {
    const [first, ...rest] = selector.requirements
    if (first && rest.length === 0 && (first.operator === '=' || first.operator === 'in'))
      return first.values.some((value) => values.has(`${first.key}=${value}`))
    return nodes.some(({ labels }) => matchesLabels(selector, labels))
  }
}
