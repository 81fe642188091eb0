// The schema of VolumeUsage: a node agent's measurements of a mounted volume, which OperationReport sends.
import { double, type Infer, object, opt, req, string } from '../../schema.ts'

export const volumeUsage = object('dev.stowage.v1.VolumeUsage', 'Measurements of a mounted volume by a node agent.', {
  namespace: req(1, string, 'Namespace of the claim.'),
  claim: req(2, string, 'Name of the claim.'),
  capacityBytes: opt(3, double, 'Size of the volume.'),
  availableBytes: opt(4, double, 'Bytes that are free.'),
  usedBytes: opt(5, double, 'Bytes that are used.'),
  inodes: opt(6, double, 'Number of inodes.'),
  inodesUsed: opt(7, double, 'Number of inodes in use.'),
  growthBytesPerDay: opt(8, double, 'Growth of the used bytes per day.'),
  iops: opt(9, double, 'IO operations per second, reads and writes together.'),
  throughputBytes: opt(10, double, 'Bytes per second, reads and writes together.'),
})
export type VolumeUsage = Infer<typeof volumeUsage>

/** The amounts of a VolumeUsage, and their names in the metric of the API server. */
export const USAGE_AMOUNTS = {
  capacityBytes: 'capacity_bytes',
  availableBytes: 'available_bytes',
  usedBytes: 'used_bytes',
  inodes: 'inodes',
  inodesUsed: 'inodes_used',
  growthBytesPerDay: 'growth_bytes_per_day',
  iops: 'iops',
  throughputBytes: 'throughput_bytes',
} as const satisfies Partial<Record<keyof VolumeUsage, string>>

/** The metric of the API server with the usage that other processes report. */
export const REPORTED_USAGE_METRIC = 'stowage_reported_volume_usage'
