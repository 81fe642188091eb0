// Collects the metrics of the driver, its pool and its volumes.
import { Gauge, type Registry } from 'prom-client'
import type { HostFacts } from '../host/index.ts'
import type { DriverContext } from './context.ts'

export interface DriverMetrics {
  /** Returns the metrics in the Prometheus text format. Values are collected on every call. */
  text(): Promise<string>
}

const PREFIX = 'stowage_driver_'

export function createDriverMetrics(registry: Registry, driver: DriverContext, facts: HostFacts): DriverMetrics {
  const gauge = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [...labelNames], registers: [registry] })

  const backend = gauge('backend', '1 for the backend in use.', ['backend'])
  const ability = gauge('ability', '1 for an ability that this machine has, 0 for one that it lacks.', ['ability'])
  backend.set({ backend: driver.backend.name }, 1)
  for (const [name, isAvailable] of listAbilities(facts)) ability.set({ ability: name }, isAvailable ? 1 : 0)

  const poolSize = gauge('pool_size_bytes', 'Size of the pool.')
  const poolPromised = gauge(
    'pool_promised_bytes',
    'Space promised to volumes and snapshots; thin ones divided by their overcommit ratio.',
  )
  const poolFree = gauge('pool_free_bytes', 'Free space of the file system that contains the pool.')
  const objects = gauge('objects', 'Volumes and snapshots in the pool.', ['kind'])
  const stagedVolumes = gauge('staged_volumes', 'Volumes that are staged on this node.')

  const perVolume = ['volume_id']
  const volumeHealthy = gauge(
    'volume_healthy',
    '0 for a volume that is damaged, exceeds its size or is not completely deleted, otherwise 1.',
    perVolume,
  )
  const limitEnforced = gauge(
    'limit_enforced',
    '1 if the limits of a staged volume are enforced, 0 if they are not.',
    perVolume,
  )
  const iopsLimit = gauge(
    'volume_iops_limit',
    'Limit of IO operations per second, for reads and writes each.',
    perVolume,
  )
  const throughputLimit = gauge(
    'volume_throughput_limit_bytes',
    'Limit of bytes per second, for reads and writes each.',
    perVolume,
  )
  const perDirection = ['volume_id', 'direction']
  const iops = gauge('volume_iops', 'Current IO operations per second.', perDirection)
  const throughput = gauge('volume_throughput_bytes', 'Current bytes per second.', perDirection)
  const iopsAvailable = gauge('volume_iops_available', 'Unused part of the iops limit.', perDirection)
  const throughputAvailable = gauge(
    'volume_throughput_available_bytes',
    'Unused part of the throughput limit.',
    perDirection,
  )
  const operations = gauge(
    'volume_io_operations',
    'IO operations since the volume was staged or the driver started, whichever is later.',
    perDirection,
  )
  const transferredBytes = gauge(
    'volume_io_bytes',
    'Bytes transferred since the volume was staged or the driver started, whichever is later.',
    perDirection,
  )
  const volumeGauges = [
    volumeHealthy,
    limitEnforced,
    iopsLimit,
    throughputLimit,
    iops,
    throughput,
    iopsAvailable,
    throughputAvailable,
    operations,
    transferredBytes,
  ]

  async function refresh(): Promise<void> {
    const volumes = driver.volumes.list()
    poolSize.set(driver.pool.sizeBytes)
    poolPromised.set(driver.pool.promisedBytes)
    poolFree.set(await driver.pool.freeBytes())
    objects.set({ kind: 'volume' }, volumes.length)
    objects.set({ kind: 'snapshot' }, driver.snapshots.list().length)
    stagedVolumes.set(driver.mountRecords.list().filter((mountRecord) => mountRecord.staged).length)

    for (const volumeGauge of volumeGauges) volumeGauge.reset()
    for (const volume of volumes) {
      const labels = { volume_id: volume.id }
      volumeHealthy.set(
        labels,
        volume.state === 'deleting' || (await driver.backend.contents.findProblem(volume)) ? 0 : 1,
      )
      const { iops: iopsMax, throughputBytes } = volume.limits
      if (iopsMax !== undefined) iopsLimit.set(labels, iopsMax)
      if (throughputBytes !== undefined) throughputLimit.set(labels, throughputBytes)
      const enforcement = driver.limits.enforcement(volume.id)
      if (enforcement) limitEnforced.set(labels, enforcement.is === 'enforced' ? 1 : 0)
      await refreshIo(labels, volume.id, { iopsMax, throughputBytes })
    }
  }

  async function refreshIo(
    volumeLabels: { volume_id: string },
    id: Parameters<DriverContext['backend']['node']['io']>[0],
    { iopsMax, throughputBytes }: { iopsMax?: number; throughputBytes?: number },
  ): Promise<void> {
    const io = await driver.backend.node.io(id)
    if (!io) return
    const { rates, totals } = io
    const directions = [
      { direction: 'read', ops: rates.readIops, bps: rates.readBps, count: totals.reads, bytes: totals.readBytes },
      {
        direction: 'write',
        ops: rates.writeIops,
        bps: rates.writeBps,
        count: totals.writes,
        bytes: totals.writtenBytes,
      },
    ]
    for (const { direction, ops, bps, count, bytes } of directions) {
      const labels = { ...volumeLabels, direction }
      iops.set(labels, ops)
      throughput.set(labels, bps)
      operations.set(labels, count)
      transferredBytes.set(labels, bytes)
      if (iopsMax !== undefined) iopsAvailable.set(labels, Math.max(0, iopsMax - ops))
      if (throughputBytes !== undefined) throughputAvailable.set(labels, Math.max(0, throughputBytes - bps))
    }
  }

  return {
    async text() {
      await refresh()
      return registry.metrics()
    },
  }
}

const listAbilities = (facts: HostFacts): [string, boolean][] => [
  ['loop', facts.canLoop.available],
  ['mount', facts.canMount.available],
  ['xfs', facts.filesystems.xfs.available],
  ['ext4', facts.filesystems.ext4.available],
  ['reflink', facts.canReflink.available],
  ['grow-ext4-online', facts.canGrowExt4Online.available],
  ['limits', facts.limits.version !== 'none'],
]
