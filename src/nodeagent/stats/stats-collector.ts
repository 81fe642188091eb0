// Exports the usage of each mounted volume (NodeGetVolumeStats), its growth and the IO rates as metrics, every one to two
// minutes. Each pod has its own interval with jitter, so that drivers are not called for all volumes at the same time.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { VolumeUsage_Unit as Unit } from '../../csi/gen/csi_pb.js'
import type { IoRates } from '../../host/index.ts'
import { createWorkQueue, done, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { AgentMetrics, IoStats, VolumeLabels, VolumeStats } from '../metrics.ts'
import type { MountedVolume } from '../pods/reconcile-pod.ts'
import type { Drivers } from '../registration/drivers.ts'
import { createUsageHistory } from './usage-history.ts'

export interface StatsDeps {
  readonly mountedVolumes: ReadonlyMap<string, ReadonlyMap<string, MountedVolume>>
  readonly drivers: Drivers
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Whether pods are being reconciled. */
  isBusy(): boolean
  /** Returns the IO rates of the volume at this path, or undefined if it is not a separate device. */
  ratesAt(path: string): Promise<IoRates | undefined>
  /** Returns the provisioned IO. Unknown values are undefined. */
  readProvisionedIo(volume: MountedVolume): Promise<{ readonly iops?: number; readonly throughputBytes?: number }>
}

export interface StatsCollector {
  /** Must be called after volumes of the pod were mounted or unmounted. */
  update(uid: string): void
  run(signal: AbortSignal): Promise<void>
}

const PERIOD_MS = 60_000
const FIRST_COLLECTION_MS = 1_000
/** While pods are being reconciled, the first collection is delayed at most until this time after the mount. */
const FIRST_COLLECTION_MS_MAX = 10_000
/** Delay of the second sample, which a rate requires. */
const SECOND_SAMPLE_MS = 2_000
const STATS_TIMEOUT_MS = 120_000
const WORKERS = 4

export function createStatsCollector(deps: StatsDeps): StatsCollector {
  const { mountedVolumes, drivers, metrics, clock, random, log } = deps
  const exportedLabels = new Map<string, VolumeLabels[]>()
  const history = createUsageHistory()
  const queue = createWorkQueue({ name: 'volume-stats', clock, random, log, workers: WORKERS })

  const isRecentlyPublished = (uid: string): boolean =>
    [...(mountedVolumes.get(uid)?.values() ?? [])].some(
      ({ publishedMs }) => clock.monotonicMs() - publishedMs < FIRST_COLLECTION_MS_MAX,
    )

  async function collect(uid: string): Promise<Outcome> {
    if (!exportedLabels.has(uid) && isRecentlyPublished(uid) && deps.isBusy())
      return retryAfter(FIRST_COLLECTION_MS, 'waiting until no pods are being reconciled')
    const labels: VolumeLabels[] = []
    for (const volume of mountedVolumes.get(uid)?.values() ?? []) {
      const { namespace = '', name = '' } = volume.csi?.claim?.metadata ?? {}
      if (!volume.csi?.claim || !volume.publication) continue
      const label = { namespace, persistentvolumeclaim: name }
      const stats = await readStats(volume)
      if (stats) metrics.setVolume(label, stats)
      labels.push(label)
    }
    for (const exportedLabel of exportedLabels.get(uid) ?? []) {
      const isExported =
        labels.some((label) => isSame(label, exportedLabel)) || isExportedForOtherPod(uid, exportedLabel)
      if (!isExported) metrics.removeVolume(exportedLabel)
    }
    if (labels.length === 0) {
      exportedLabels.delete(uid)
      return done
    }
    const isFirst = !exportedLabels.has(uid)
    exportedLabels.set(uid, labels)
    if (isFirst) return retryAfter(SECOND_SAMPLE_MS, 'IO rates need a second sample')
    return retryAfter(PERIOD_MS * (1 + random()), 'stats are collected periodically')
  }

  const isExportedForOtherPod = (uid: string, label: VolumeLabels) =>
    [...exportedLabels].some(
      ([otherUid, labels]) => otherUid !== uid && labels.some((candidate) => isSame(candidate, label)),
    )

  /** Returns undefined if the call failed: the previous values remain exported. */
  async function readStats(volume: MountedVolume): Promise<VolumeStats | undefined> {
    const { publication, csi } = volume
    const driver = drivers.get(publication!.driver)
    if (!driver?.capabilities.has('GET_VOLUME_STATS')) return readIoStats(volume)
    try {
      const response = await driver.csi.node.nodeGetVolumeStats(
        { volumeId: publication!.handle, volumePath: publication!.target },
        { timeoutMs: STATS_TIMEOUT_MS },
      )
      const usageOf = (unit: Unit) => response.usage.find((usage) => usage.unit === unit)
      const [bytes, inodes] = [usageOf(Unit.BYTES), usageOf(Unit.INODES)]
      return {
        ...(bytes ? { capacityBytes: Number(bytes.total) } : {}),
        // The usage of a raw device is unknown.
        ...(bytes && csi!.mode === 'Filesystem' ? recordUsage(volume, bytes) : {}),
        ...(inodes
          ? { inodes: Number(inodes.total), inodesFree: Number(inodes.available), inodesUsed: Number(inodes.used) }
          : {}),
        ...(response.volumeCondition ? { healthAbnormal: response.volumeCondition.abnormal ? 1 : 0 } : {}),
        ...(await readIoStats(volume)),
      }
    } catch (error) {
      log.debug(
        { volume: publication!.volumeName, reason: (error as Error).message },
        'cannot collect the stats of this volume',
      )
      return undefined
    }
  }

  /** Adds the usage to the history, and returns it with the growth. */
  function recordUsage(
    { publication }: MountedVolume,
    { available, used }: { readonly available: bigint; readonly used: bigint },
  ): VolumeStats {
    const { driver, handle } = publication!
    const usedBytes = Number(used)
    const growthBytesPerDay = history.add(`${driver} ${handle}`, { timeMs: clock.monotonicMs(), usedBytes })
    return {
      availableBytes: Number(available),
      usedBytes,
      ...(growthBytesPerDay === undefined ? {} : { growthBytesPerDay }),
    }
  }

  async function readIoStats(volume: MountedVolume): Promise<Pick<VolumeStats, 'read' | 'write'>> {
    const rates = await deps.ratesAt(volume.publication!.target)
    if (!rates) return {}
    const { iops, throughputBytes } = await deps.readProvisionedIo(volume)
    const toIoStats = (usedIops: number, usedBytes: number): IoStats => ({
      iopsUsed: usedIops,
      throughputUsed: usedBytes,
      ...(iops === undefined ? {} : { iopsAvailable: Math.max(0, iops - usedIops) }),
      ...(throughputBytes === undefined ? {} : { throughputAvailable: Math.max(0, throughputBytes - usedBytes) }),
    })
    return { read: toIoStats(rates.readIops, rates.readBps), write: toIoStats(rates.writeIops, rates.writeBps) }
  }

  return {
    update(uid) {
      if (!mountedVolumes.has(uid)) queue.add(uid)
      else if (!exportedLabels.has(uid)) queue.addAfter(uid, FIRST_COLLECTION_MS)
    },
    run: (signal) => queue.run(collect, signal),
  }
}

const isSame = (a: VolumeLabels, b: VolumeLabels) =>
  a.namespace === b.namespace && a.persistentvolumeclaim === b.persistentvolumeclaim
