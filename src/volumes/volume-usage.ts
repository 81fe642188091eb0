// The measured usage of mounted volumes. It is parsed from the metrics of a Stowage server or from the summary of a kubelet.
import { REPORTED_USAGE_METRIC, USAGE_AMOUNTS } from '../api/kinds/operation/volume-usage-schema.ts'
import type { ObjectKey } from '../client/index.ts'

/** Values that were not measured are absent. */
export interface VolumeUsage {
  readonly usedBytes?: number
  readonly freeBytes?: number
  readonly inodes?: number
  readonly inodesUsed?: number
  /** Operations per second, reads and writes together. */
  readonly iops?: number
  /** Bytes per second, reads and writes together. The name is that of the JSON field of `df -o json` and of the console. */
  readonly throughputBytes?: number
  readonly growthBytesPerDay?: number
}

export type UsageByClaim = ReadonlyMap<ObjectKey, VolumeUsage>

/** The field of each metric. */
const METRICS: Readonly<Record<string, keyof VolumeUsage>> = {
  kubelet_volume_stats_used_bytes: 'usedBytes',
  kubelet_volume_stats_available_bytes: 'freeBytes',
  kubelet_volume_stats_inodes: 'inodes',
  kubelet_volume_stats_inodes_used: 'inodesUsed',
  stowage_volume_iops_used: 'iops',
  stowage_volume_throughput_used_bytes: 'throughputBytes',
  stowage_volume_growth_bytes_per_day: 'growthBytesPerDay',
}

/** The metrics that parseMetrics reads. */
export const USAGE_METRICS: readonly string[] = [...Object.keys(METRICS), REPORTED_USAGE_METRIC]

/** The field of each `amount` label in REPORTED_USAGE_METRIC, with which nodes outside the server report usage. */
const REPORTED_AMOUNTS: Readonly<Record<string, keyof VolumeUsage>> = {
  [USAGE_AMOUNTS.usedBytes]: 'usedBytes',
  [USAGE_AMOUNTS.availableBytes]: 'freeBytes',
  [USAGE_AMOUNTS.inodes]: 'inodes',
  [USAGE_AMOUNTS.inodesUsed]: 'inodesUsed',
  [USAGE_AMOUNTS.iops]: 'iops',
  [USAGE_AMOUNTS.throughputBytes]: 'throughputBytes',
  [USAGE_AMOUNTS.growthBytesPerDay]: 'growthBytesPerDay',
}

/** Fields whose metrics have a sample for each direction. The samples are added. */
const DIRECTED_FIELDS: ReadonlySet<keyof VolumeUsage> = new Set(['iops', 'throughputBytes'])

const SAMPLE = /^(\w+)\{([^}]*)\} (\S+)$/gm

type MutableUsage = Partial<Record<keyof VolumeUsage, number>>

/**
 * Parses the text format of Prometheus. If the server itself has measured the volume of a claim, reports of nodes about that
 * claim are ignored. Nodes that have mounted the same volume measure the same file system, so mergeNodes does not add their
 * amounts of space.
 */
export function parseMetrics(text: string): UsageByClaim {
  const usages = new Map<ObjectKey, UsageByNode>()
  const reportedUsages = new Map<ObjectKey, UsageByNode>()
  for (const [, metric = '', labels = '', value] of text.matchAll(SAMPLE)) {
    const isReported = metric === REPORTED_USAGE_METRIC
    const field = isReported ? REPORTED_AMOUNTS[labelOf(labels, 'amount')] : METRICS[metric]
    if (!field || !Number.isFinite(Number(value))) continue
    const key = `${labelOf(labels, 'namespace')}/${labelOf(labels, 'persistentvolumeclaim')}`
    const node = labelOf(labels, 'process') // of a node agent; the agents of the server share one sample
    addSample(isReported ? reportedUsages : usages, { key, node, field, value: Number(value) })
  }
  return new Map([...reportedUsages, ...usages].map(([key, byNode]) => [key, mergeNodes(byNode)]))
}

type UsageByNode = Map<string, MutableUsage>

interface Sample {
  readonly key: ObjectKey
  /** Empty if the sample names no node. */
  readonly node: string
  readonly field: keyof VolumeUsage
  readonly value: number
}

function addSample(usages: Map<ObjectKey, UsageByNode>, { key, node, field, value }: Sample): void {
  const byNode = usages.get(key) ?? new Map<string, MutableUsage>()
  const usage = byNode.get(node) ?? {}
  const previous = usage[field]
  if (previous === undefined) usage[field] = value
  else usage[field] = DIRECTED_FIELDS.has(field) ? previous + value : Math.max(previous, value)
  usages.set(key, byNode.set(node, usage))
}

/**
 * Takes all file system fields from the node that reports the largest file system, because after an expansion other nodes may
 * still report the old size. IOPS and throughput are summed over the nodes.
 */
function mergeNodes(byNode: UsageByNode): VolumeUsage {
  const sizeOf = ({ usedBytes = 0, freeBytes = 0 }: MutableUsage) => usedBytes + freeBytes
  const merged: MutableUsage = {}
  for (const usage of [...byNode.values()].sort((a, b) => sizeOf(a) - sizeOf(b))) {
    const sums = [...DIRECTED_FIELDS].flatMap((field): [keyof VolumeUsage, number][] => {
      const total = (merged[field] ?? 0) + (usage[field] ?? 0)
      return merged[field] === undefined && usage[field] === undefined ? [] : [[field, total]]
    })
    Object.assign(merged, usage, Object.fromEntries(sums))
  }
  return merged
}

const labelOf = (labels: string, name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? ''

/** The fields of a kubelet's response to /stats/summary that are read here. */
interface Summary {
  readonly pods?: readonly { readonly volume?: readonly SummaryVolume[] }[]
}

interface SummaryVolume {
  readonly usedBytes?: number
  readonly availableBytes?: number
  readonly inodes?: number
  readonly inodesUsed?: number
  readonly pvcRef?: { readonly namespace?: string; readonly name?: string }
}

/** Parses a kubelet's response. Throws a SyntaxError if it is not JSON. */
export function parseSummary(text: string): UsageByClaim {
  const { pods = [] } = JSON.parse(text) as Summary
  const usages = new Map<ObjectKey, VolumeUsage>()
  for (const { usedBytes, availableBytes, inodes, inodesUsed, pvcRef } of pods.flatMap(({ volume = [] }) => volume)) {
    if (!pvcRef) continue
    usages.set(`${pvcRef.namespace}/${pvcRef.name}`, {
      ...(usedBytes === undefined ? {} : { usedBytes }),
      ...(availableBytes === undefined ? {} : { freeBytes: availableBytes }),
      ...(inodes === undefined ? {} : { inodes }),
      ...(inodesUsed === undefined ? {} : { inodesUsed }),
    })
  }
  return usages
}
