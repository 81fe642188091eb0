// The agent's metrics: driver calls, volume operations, usage and IO of volumes. Metrics that the kubelet
// also exports have its names.
import { Gauge, Histogram, type Registry } from 'prom-client'
import { type CallObserver, goNameOf } from '../csi/index.ts'

export interface AgentMetrics {
  readonly calls: CallObserver
  /** Runs a volume operation, and records its duration and status. */
  measure<T>(driver: string, operation: StorageOperation, work: () => Promise<T>): Promise<T>
  setVolume(volume: VolumeLabels, stats: VolumeStats): void
  removeVolume(volume: VolumeLabels): void
  /** The volumes that were set, but not removed, by namespace and name of the claim. */
  readonly volumes: ReadonlyMap<string, { readonly labels: VolumeLabels; readonly stats: VolumeStats }>
}

type StorageOperation =
  | 'volume_mount'
  | 'volume_unmount'
  | 'unmount_device'
  | 'map_volume'
  | 'unmap_volume'
  | 'unmap_device'
  | 'volume_fs_resize'
  | 'volume_apply_access_control'

export interface VolumeLabels {
  readonly namespace: string
  readonly persistentvolumeclaim: string
}

/** Undefined values are not exported. */
export interface VolumeStats extends Partial<Record<keyof typeof GAUGES, number>> {
  readonly read?: IoStats
  readonly write?: IoStats
}

export type IoStats = Partial<Record<keyof typeof IO_GAUGES, number>>

const DURATION_BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]
const CLAIM_LABELS = ['namespace', 'persistentvolumeclaim']

const GAUGES = {
  capacityBytes: ['kubelet_volume_stats_capacity_bytes', 'Capacity in bytes of the volume'],
  availableBytes: ['kubelet_volume_stats_available_bytes', 'Number of available bytes in the volume'],
  usedBytes: ['kubelet_volume_stats_used_bytes', 'Number of used bytes in the volume'],
  inodes: ['kubelet_volume_stats_inodes', 'Maximum number of inodes in the volume'],
  inodesFree: ['kubelet_volume_stats_inodes_free', 'Number of free inodes in the volume'],
  inodesUsed: ['kubelet_volume_stats_inodes_used', 'Number of used inodes in the volume'],
  growthBytesPerDay: [
    'stowage_volume_growth_bytes_per_day',
    'Growth of the used bytes per day, over the time since the agent started and at most a week',
  ],
  healthAbnormal: ['kubelet_volume_stats_health_status_abnormal', '1 if the volume is unhealthy, 0 if it is healthy'],
} as const

const IO_GAUGES = {
  iopsUsed: ['stowage_volume_iops_used', 'Current IO operations per second of the volume'],
  iopsAvailable: [
    'stowage_volume_iops_available',
    'Unused IO operations per second of those provisioned for the volume',
  ],
  throughputUsed: ['stowage_volume_throughput_used_bytes', 'Current throughput of the volume in bytes per second'],
  throughputAvailable: [
    'stowage_volume_throughput_available_bytes',
    'Unused bytes per second of the throughput provisioned for the volume',
  ],
} as const

const DIRECTIONS = ['read', 'write'] as const

export function createAgentMetrics(registry: Registry, clock: { monotonicMs(): number }): AgentMetrics {
  const calls = new Histogram({
    name: 'csi_operations_seconds',
    help: 'Duration of calls to CSI drivers.',
    labelNames: ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  })
  const operations = new Histogram({
    name: 'storage_operation_duration_seconds',
    help: 'Duration of volume operations.',
    labelNames: ['volume_plugin', 'operation_name', 'status', 'migrated'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  })
  const createGauges = <K extends string>(
    definitions: Readonly<Record<K, readonly [string, string]>>,
    labelNames: string[],
  ) =>
    (Object.entries(definitions) as [K, readonly [string, string]][]).map(
      ([key, [name, help]]) => [key, new Gauge({ name, help, labelNames, registers: [registry] })] as const,
    )
  const gauges = createGauges(GAUGES, CLAIM_LABELS)
  const ioGauges = createGauges(IO_GAUGES, [...CLAIM_LABELS, 'direction'])
  const set = (gauge: Gauge, labels: Record<string, string>, value: number | undefined) =>
    value === undefined ? gauge.remove(labels) : gauge.set(labels, value)
  const volumes = new Map<string, { labels: VolumeLabels; stats: VolumeStats }>()
  const keyOf = ({ namespace, persistentvolumeclaim }: VolumeLabels) => `${namespace}/${persistentvolumeclaim}`
  const setGauges = (volume: VolumeLabels, stats: VolumeStats) => {
    for (const [key, gauge] of gauges) set(gauge, { ...volume }, stats[key])
    for (const direction of DIRECTIONS) {
      for (const [key, gauge] of ioGauges) set(gauge, { ...volume, direction }, stats[direction]?.[key])
    }
  }

  return {
    calls: {
      observeCall: ({ driverName, method, code, seconds }) =>
        calls.observe(
          { driver_name: driverName, method_name: method, grpc_status_code: goNameOf(code), migrated: 'false' },
          seconds,
        ),
    },
    async measure(driver, operation, work) {
      const startedMs = clock.monotonicMs()
      const observe = (status: string) =>
        operations.observe(
          { volume_plugin: `kubernetes.io/csi:${driver}`, operation_name: operation, status, migrated: 'false' },
          (clock.monotonicMs() - startedMs) / 1_000,
        )
      try {
        const result = await work()
        observe('success')
        return result
      } catch (error) {
        observe('fail-unknown')
        throw error
      }
    },
    volumes,
    setVolume(volume, stats) {
      volumes.set(keyOf(volume), { labels: volume, stats })
      setGauges(volume, stats)
    },
    removeVolume(volume) {
      volumes.delete(keyOf(volume))
      setGauges(volume, {})
    },
  }
}
