// What the driver tells operators: how its pool is used, what its volumes do and may do, and whether limits hold.
// The protocol has no words for IO rates, so this is where they are.
import { Gauge, type Registry } from 'prom-client'
import type { HostFacts } from '../host/index.ts'
import type { DriverContext } from './context.ts'

export interface DriverMetrics {
  /** In the text format, asked anew for every reader. */
  text(): Promise<string>
}

const PREFIX = 'stowage_driver_'

export function createDriverMetrics(registry: Registry, driver: DriverContext, facts: HostFacts): DriverMetrics {
  const gauge = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [...labelNames], registers: [registry] })

  const backend = gauge('backend', '1 for the backend that volumes are made with.', ['backend'])
  const ability = gauge('ability', '1 for what this machine allows, 0 for what it does not.', ['ability'])
  backend.set({ backend: driver.backend.name }, 1)
  for (const [name, yes] of abilitiesOf(facts)) ability.set({ ability: name }, yes ? 1 : 0)

  const poolSize = gauge('pool_size_bytes', 'What the pool may hold.')
  const poolPromised = gauge(
    'pool_promised_bytes',
    'What volumes and snapshots weigh; thin ones by their overcommit ratio.',
  )
  const poolFree = gauge('pool_free_bytes', 'What the file system under the pool can still give.')
  const objects = gauge('objects', 'Volumes and snapshots in the pool.', ['kind'])
  const staged = gauge('staged_volumes', 'Volumes that are staged on this node.')

  const perVolume = ['volume_id']
  const healthy = gauge('volume_healthy', '0 for a volume whose file or directory is damaged or gone.', perVolume)
  const enforced = gauge(
    'limit_enforced',
    '1 if the limits of a staged volume hold, 0 if they cannot be enforced.',
    perVolume,
  )
  const iopsLimit = gauge('volume_iops_limit', 'IO operations per second a volume may do, each way.', perVolume)
  const bytesLimit = gauge('volume_throughput_limit_bytes', 'Bytes per second a volume may move, each way.', perVolume)
  const perDirection = ['volume_id', 'direction']
  const iops = gauge('volume_iops', 'IO operations per second a volume does.', perDirection)
  const throughput = gauge('volume_throughput_bytes', 'Bytes per second a volume moves.', perDirection)
  const iopsLeft = gauge('volume_iops_available', 'What is left of its limit.', perDirection)
  const throughputLeft = gauge('volume_throughput_available_bytes', 'What is left of its limit.', perDirection)
  const operations = gauge('volume_io_operations', 'IO operations since the volume was staged.', perDirection)
  const moved = gauge('volume_io_bytes', 'Bytes moved since the volume was staged.', perDirection)
  const volumeGauges = [
    healthy,
    enforced,
    iopsLimit,
    bytesLimit,
    iops,
    throughput,
    iopsLeft,
    throughputLeft,
    operations,
    moved,
  ]

  async function refresh(): Promise<void> {
    const volumes = driver.volumes.list()
    poolSize.set(driver.pool.sizeBytes)
    poolPromised.set(driver.pool.promisedBytes)
    poolFree.set(await driver.pool.freeBytes())
    objects.set({ kind: 'volume' }, volumes.length)
    objects.set({ kind: 'snapshot' }, driver.snapshots.list().length)
    staged.set(driver.presences.list().filter((presence) => presence.staged).length)

    for (const each of volumeGauges) each.reset()
    for (const volume of volumes) {
      const of = { volume_id: volume.id }
      healthy.set(of, volume.state === 'deleting' || (await driver.backend.contents.problem(volume)) ? 0 : 1)
      const { iops: iopsMax, throughputBytes } = volume.limits
      if (iopsMax !== undefined) iopsLimit.set(of, iopsMax)
      if (throughputBytes !== undefined) bytesLimit.set(of, throughputBytes)
      const enforcement = driver.limits.enforcement(volume.id)
      if (enforcement) enforced.set(of, enforcement.is === 'enforced' ? 1 : 0)
      await refreshIo(of, volume.id, { iopsMax, throughputBytes })
    }
  }

  async function refreshIo(
    of: { volume_id: string },
    id: Parameters<DriverContext['backend']['node']['io']>[0],
    { iopsMax, throughputBytes }: { iopsMax?: number; throughputBytes?: number },
  ): Promise<void> {
    const io = await driver.backend.node.io(id)
    if (!io) return
    const { rates, totals } = io
    const ways = [
      { direction: 'read', ops: rates.readIops, bps: rates.readBps, count: totals.reads, bytes: totals.readBytes },
      {
        direction: 'write',
        ops: rates.writeIops,
        bps: rates.writeBps,
        count: totals.writes,
        bytes: totals.writtenBytes,
      },
    ]
    for (const { direction, ops, bps, count, bytes } of ways) {
      const labels = { ...of, direction }
      iops.set(labels, ops)
      throughput.set(labels, bps)
      operations.set(labels, count)
      moved.set(labels, bytes)
      if (iopsMax !== undefined) iopsLeft.set(labels, Math.max(0, iopsMax - ops))
      if (throughputBytes !== undefined) throughputLeft.set(labels, Math.max(0, throughputBytes - bps))
    }
  }

  return {
    async text() {
      await refresh()
      return registry.metrics()
    },
  }
}

const abilitiesOf = (facts: HostFacts): [string, boolean][] => [
  ['loop', facts.canLoop.yes],
  ['mount', facts.canMount.yes],
  ['xfs', facts.filesystems.xfs.yes],
  ['ext4', facts.filesystems.ext4.yes],
  ['reflink', facts.canReflink.yes],
  ['grow-ext4-online', facts.canGrowExt4Online.yes],
  ['limits', facts.limits.version !== 'none'],
]
