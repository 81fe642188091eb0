// The measured usage of mounted volumes. It is parsed from the metrics of a Stowage server or from the summary of a kubelet.
import { REPORTED_USAGE_METRIC, USAGE_AMOUNTS } from '../api/kinds/operation/volume-usage-schema.ts'
import type { ObjectKey } from '../client/index.ts'

/** Values that were not measured are absent. */
export interface VolumeUsage {
  readonly usedBytes?: number
  readonly freeBytes?: number
  readonly inodes?: number
  readonly inodesUsed?: number
  /** Operations and bytes per second, reads and writes together. */
  readonly iops?: number
  readonly throughputBytes?: number
  readonly growthBytesPerDay?: number
}

export type UsageByClaim = ReadonlyMap<ObjectKey, VolumeUsage>

/** The field of each metric. Metrics of both directions are added. */
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

const SAMPLE = /^(\w+)\{([^}]*)\} (\S+)$/gm

type MutableUsage = Partial<Record<keyof VolumeUsage, number>>

/** Parses the text format of Prometheus. If the server itself has measured a claim, reports of nodes about it are ignored. */
export function parseMetrics(text: string): UsageByClaim {
  const usages = new Map<ObjectKey, MutableUsage>()
  const reportedUsages = new Map<ObjectKey, MutableUsage>()
  for (const [, metric = '', labels = '', value] of text.matchAll(SAMPLE)) {
    const isReported = metric === REPORTED_USAGE_METRIC
    const field = isReported ? REPORTED_AMOUNTS[labelOf(labels, 'amount')] : METRICS[metric]
    if (!field || !Number.isFinite(Number(value))) continue
    const key = `${labelOf(labels, 'namespace')}/${labelOf(labels, 'persistentvolumeclaim')}`
    if (isReported) {
      // Every node with the volume reports the same file system.
      reportedUsages.set(key, { ...reportedUsages.get(key), [field]: Number(value) })
      continue
    }
    const usage = usages.get(key) ?? {}
    usage[field] = (usage[field] ?? 0) + Number(value)
    usages.set(key, usage)
  }
  return new Map([...reportedUsages, ...usages])
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
