// Collects usage (NodeGetVolumeStats) and IO rates of each mounted volume about once a minute, as metrics. Each pod has its
// own interval with jitter, so that drivers are not called for all volumes at once.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { VolumeUsage_Unit as Unit } from '../../csi/gen/csi_pb.js'
import type { IoRates } from '../../host/index.ts'
import { createWorkQueue, done, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { AgentMetrics, IoStats, VolumeLabels, VolumeStats } from '../metrics.ts'
import type { MountedVolume } from '../pods/reconcile-pod.ts'
import type { Drivers } from '../registration/drivers.ts'

export interface StatsDeps {
  readonly mounted: ReadonlyMap<string, ReadonlyMap<string, MountedVolume>>
  readonly drivers: Drivers
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Whether pod reconciles are running. */
  isBusy(): boolean
  /** IO rates of the volume at this path; undefined if it is not a separate device. */
  ratesAt(path: string): Promise<IoRates | undefined>
  /** The provisioned IO; undefined values are not limited. */
  provisioned(volume: MountedVolume): Promise<{ readonly iops?: number; readonly throughputBytes?: number }>
}

export interface StatsCollector {
  /** The pod's volumes were mounted or unmounted. */
  look(uid: string): void
  run(signal: AbortSignal): Promise<void>
}

const PERIOD_MS = 60_000
const FIRST_LOOK_MS = 1_000
/** Collection pauses while pods are reconciled, but at most this long. */
const FIRST_LOOK_MS_MAX = 10_000
/** A rate needs two samples: the second follows soon after the first. */
const SECOND_LOOK_MS = 2_000
const STATS_TIMEOUT_MS = 120_000
const WORKERS = 4

export function createStatsCollector(deps: StatsDeps): StatsCollector {
  const { mounted, drivers, metrics, clock, random, log } = deps
  const shown = new Map<string, VolumeLabels[]>()
  const queue = createWorkQueue({ name: 'volume-stats', clock, random, log, workers: WORKERS })

  const isFresh = (uid: string): boolean =>
    [...(mounted.get(uid)?.values() ?? [])].some(
      ({ publishedMs }) => clock.monotonicMs() - publishedMs < FIRST_LOOK_MS_MAX,
    )

  async function collect(uid: string): Promise<Outcome> {
    if (!shown.has(uid) && isFresh(uid) && deps.isBusy()) return retryAfter(FIRST_LOOK_MS, 'other pods come first')
    const labels: VolumeLabels[] = []
    for (const volume of mounted.get(uid)?.values() ?? []) {
      const { namespace = '', name = '' } = volume.csi?.claim?.metadata ?? {}
      if (!volume.csi?.claim || !volume.publication) continue
      const label = { namespace, persistentvolumeclaim: name }
      const stats = await statsOf(volume)
      if (stats) metrics.setVolume(label, stats)
      labels.push(label)
    }
    for (const old of shown.get(uid) ?? []) {
      if (!labels.some((one) => isSame(one, old)) && !isShownElsewhere(uid, old)) metrics.forgetVolume(old)
    }
    if (labels.length === 0) {
      shown.delete(uid)
      return done
    }
    const isFirst = !shown.has(uid)
    shown.set(uid, labels)
    if (isFirst) return retryAfter(SECOND_LOOK_MS, 'asked once more for what it does in a second')
    return retryAfter(PERIOD_MS * (1 + random()), 'asked again each minute or two')
  }

  const isShownElsewhere = (uid: string, label: VolumeLabels) =>
    [...shown].some(([other, labels]) => other !== uid && labels.some((one) => isSame(one, label)))

  /** Undefined if the call failed: the previous values stay. */
  async function statsOf(volume: MountedVolume): Promise<VolumeStats | undefined> {
    const { publication, csi } = volume
    const driver = drivers.get(publication!.driver)
    if (!driver?.can.has('GET_VOLUME_STATS')) return ioOf(volume)
    try {
      const reply = await driver.csi.node.nodeGetVolumeStats(
        { volumeId: publication!.handle, volumePath: publication!.target },
        { timeoutMs: STATS_TIMEOUT_MS },
      )
      const of = (unit: Unit) => reply.usage.find((usage) => usage.unit === unit)
      const [bytes, inodes] = [of(Unit.BYTES), of(Unit.INODES)]
      return {
        ...(bytes ? { capacityBytes: Number(bytes.total) } : {}),
        // The usage of a raw device is not known.
        ...(bytes && csi!.mode === 'Filesystem'
          ? { availableBytes: Number(bytes.available), usedBytes: Number(bytes.used) }
          : {}),
        ...(inodes
          ? { inodes: Number(inodes.total), inodesFree: Number(inodes.available), inodesUsed: Number(inodes.used) }
          : {}),
        ...(reply.volumeCondition ? { healthAbnormal: reply.volumeCondition.abnormal ? 1 : 0 } : {}),
        ...(await ioOf(volume)),
      }
    } catch (error) {
      log.debug({ volume: publication!.volume, because: (error as Error).message }, 'no stats of this volume')
      return undefined
    }
  }

  async function ioOf(volume: MountedVolume): Promise<Pick<VolumeStats, 'read' | 'write'>> {
    const rates = await deps.ratesAt(volume.publication!.target)
    if (!rates) return {}
    const { iops, throughputBytes } = await deps.provisioned(volume)
    const way = (usedIops: number, usedBytes: number): IoStats => ({
      iopsUsed: usedIops,
      throughputUsed: usedBytes,
      ...(iops === undefined ? {} : { iopsAvailable: Math.max(0, iops - usedIops) }),
      ...(throughputBytes === undefined ? {} : { throughputAvailable: Math.max(0, throughputBytes - usedBytes) }),
    })
    return { read: way(rates.readIops, rates.readBps), write: way(rates.writeIops, rates.writeBps) }
  }

  return {
    look(uid) {
      if (!mounted.has(uid)) queue.add(uid)
      else if (!shown.has(uid)) queue.addAfter(uid, FIRST_LOOK_MS)
    },
    run: (signal) => queue.run(collect, signal),
  }
}

const isSame = (a: VolumeLabels, b: VolumeLabels) =>
  a.namespace === b.namespace && a.persistentvolumeclaim === b.persistentvolumeclaim
