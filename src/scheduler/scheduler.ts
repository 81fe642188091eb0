// The scheduler: gives every pod that names us a node on which it and its volumes fit. Here it is put together and kept
// running; one pod's way through it is schedule-one.ts, what wakes waiting pods is events-to-queue.ts.
import { allGatesOn, type FeatureGates } from '../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createEventRecorder, type EventRecorder } from '../runtime/index.ts'
import { CapacityIndex } from './capacity/capacity-index.ts'
import { Reservations } from './capacity/reservations.ts'
import { ClusterState } from './cluster/cluster-state.ts'
import { createDirectPlacement } from './direct-placement.ts'
import { type HelpFacts, tellQueue } from './events-to-queue.ts'
import { followCluster } from './follow-cluster.ts'
import { createGivenBack } from './given-back.ts'
import { likenessOf } from './likeness.ts'
import type { SchedulerMetrics } from './metrics.ts'
import { allPlugins } from './plugins/registry.ts'
import { BindingWaits } from './plugins/volume-binding/binding-waits.ts'
import { FailedPlaces } from './plugins/volume-binding/failed-places.ts'
import type { FollowFacts } from './plugins/volume-binding/follow-claims.ts'
import { FreeVolumes } from './plugins/volume-binding/free-volumes.ts'
import { InHand } from './plugins/volume-binding/in-hand.ts'
import { createVolumeBinding } from './plugins/volume-binding/volume-binding.ts'
import { createVolumeLimits } from './plugins/volume-limits/volume-limits.ts'
import { type PodStanding, SchedulingQueue } from './queue/queue.ts'
import { createWaitReporter } from './report-waiting.ts'
import { refusalOf, type ScheduleDeps, scheduleOne } from './schedule-one.ts'
import { takingTurns } from './turns.ts'

export interface SchedulerOptions extends ControllerDeps {
  readonly gates?: FeatureGates
  /** Hold back capacity that is promised and not yet reported as used. Default true; see capacity/reservations.ts. */
  readonly capacityReservation?: boolean
  /** Pods that name one of these schedulers are ours. */
  readonly schedulerNames?: readonly string[]
  /** How long a pod waits for its volumes before it is tried anew. Default 600 s. */
  readonly bindTimeoutMs?: number
  readonly schedulerMetrics?: SchedulerMetrics
  /** Default: one of its own, as `default-scheduler`. */
  readonly events?: EventRecorder
}

export interface Scheduler {
  /** Every pod that has no node yet, and why. */
  standings(): PodStanding[]
  /** Searches for a node so far; changes that help nobody cause none. */
  readonly attempts: number
  /** Volumes that capacity is held back for. */
  readonly reservations: number
  /** Once: what it believes is not true for the next term, which needs another. Settles when its last write has. */
  run(signal: AbortSignal): Promise<void>
}

export const SCHEDULER_NAMES = ['default-scheduler', 'stowage-scheduler'] as const
const BIND_TIMEOUT_MS = 600_000
const WRITES_AT_ONCE = 64
/** Beyond this many pods that have a node and wait for their volumes, no further pod is taken in hand. */
const BINDING_PODS_MAX = 20_000
/** Decisions between two moments in which others get to work. */
const DECISIONS_PER_TURN = 8

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { client, caches: set, clock, random, log, schedulerMetrics: metrics, gates = allGatesOn } = options
  const { bindTimeoutMs = BIND_TIMEOUT_MS, schedulerNames = SCHEDULER_NAMES, capacityReservation = true } = options
  const tracking = gates.enabled('CSIStorageCapacity')
  const pods = set.of(podKind)
  const nodes = set.of(nodeKind)
  const drivers = set.of(csiDriverKind)
  const csiNodes = set.of(csiNodeKind)
  const attachments = set.of(volumeAttachmentKind)
  const capacities = tracking ? set.of(csiStorageCapacityKind) : undefined
  const caches = {
    claims: set.of(persistentVolumeClaimKind),
    volumes: set.of(persistentVolumeKind),
    classes: set.of(storageClassKind),
  }
  const all = [pods, nodes, drivers, csiNodes, attachments, caches.claims, caches.volumes, caches.classes]
  const events = options.events ?? createEventRecorder({ client, clock, random, log, component: SCHEDULER_NAMES[0] })

  const queue = new SchedulingQueue({ clock, random })
  const cluster = new ClusterState()
  const index = new CapacityIndex()
  const inHand = new InHand()
  const free = new FreeVolumes(caches.volumes)
  const waits = new BindingWaits(caches, cluster, clock)
  const write = takingTurns(WRITES_AT_ONCE)
  // Where capacity objects are switched off, nothing is known of capacity, and nobody waits for it.
  const tracksCapacity = (driver: string) =>
    capacities?.synced === true && drivers.get(driver)?.spec.storageCapacity === true
  const reservations =
    tracking && capacityReservation
      ? new Reservations({
          index,
          clock,
          driverOf: (className) => caches.classes.get(className)?.provisioner,
          onFreed: (driver) => tellQueue(queue, 'capacityFreed', { driver }, help),
        })
      : undefined

  const volumeLimits = createVolumeLimits({ caches, csiNodes, drivers, attachments })
  const volumeBinding = createVolumeBinding({
    client,
    caches,
    free,
    inHand,
    waits,
    capacity: { index, reservations },
    tracksCapacity,
    failedPlaces: new FailedPlaces(clock),
    bindTimeoutMs,
    write,
    onReleased: (released) => tellQueue(queue, 'released', released, help),
    onError: (stage) => metrics?.volumeStageFailed(stage),
  })
  const plugins = allPlugins({ cluster, claims: caches.claims, volumeLimits, volumeBinding })
  const help: HelpFacts = {
    caches,
    holdsBackCapacity: reservations !== undefined,
    refusalOf: (pod, nodeName) => refusalOf(pod, nodeName, { cluster, plugins, volumeBinding }),
  }
  const follow: FollowFacts | undefined = reservations && { caches, cluster, index, reservations, tracksCapacity }
  const reporter = createWaitReporter({ client, pods, clock, random, log, events })
  const deps: ScheduleDeps = {
    client,
    clock,
    random,
    log,
    events,
    metrics,
    queue,
    cluster,
    caches,
    plugins,
    volumeBinding,
    help,
    likenessOf: (pod) => likenessOf(pod, { caches, free, inHand }),
    reporter,
    givenBack: createGivenBack({ clock, random }),
    write,
    onUnplaced: ({ claims }, nodeName) =>
      tellQueue(queue, 'podLeft', { nodeName, claims: claims.map(({ key }) => key) }, help),
    rotation: { startAt: 0 },
  }
  const direct = createDirectPlacement({ ...options, pods, ...caches, nodes })
  metrics?.queues.add(queue)
  if (reservations) metrics?.capacityHeldBack.add(reservations)

  async function decideAll(signal: AbortSignal): Promise<void> {
    const binding = new Set<Promise<void>>()
    let hasEnded: (() => void) | undefined
    let decisions = 0
    signal.addEventListener('abort', () => hasEnded?.(), { once: true })
    while (!signal.aborted) {
      const pod = queue.take()
      if (!pod) {
        await queue.whenReady(signal)
        continue
      }
      const work = scheduleOne(pod, deps, signal)
      if (work) {
        const tracked = work.finally(() => {
          binding.delete(tracked)
          hasEnded?.()
        })
        binding.add(tracked)
      }
      if (binding.size >= BINDING_PODS_MAX) {
        await new Promise<void>((resolve) => {
          hasEnded = resolve
        })
      }
      if (++decisions % DECISIONS_PER_TURN === 0) await clock.nextTurn()
    }
    waits.stop()
    await Promise.all(binding)
  }

  async function schedule(signal: AbortSignal): Promise<void> {
    // Half the world would look like room that is not there.
    const seen = await Promise.all([
      ...all.map((one) => one.whenSynced(signal)),
      capacities?.whenAnswered(signal) ?? true,
    ])
    if (!seen.every(Boolean)) return
    const isOurs = ({ spec }: { spec?: { schedulerName?: string } }) =>
      schedulerNames.includes(spec?.schedulerName ?? SCHEDULER_NAMES[0])
    const parts = { pods, nodes, csiNodes, drivers, attachments, capacities, caches, cluster, queue, help, index }
    const stop = followCluster({ ...parts, reservations, follow, waits, free, volumeLimits, isOurs })
    try {
      await decideAll(signal)
    } finally {
      stop()
      queue.stop()
      reservations?.stop()
      await reporter.stop()
    }
  }

  return {
    standings: () => queue.standings(),
    get attempts() {
      return queue.attempts
    },
    get reservations() {
      return reservations?.size ?? 0
    },
    async run(signal) {
      const telling = new AbortController()
      const told = options.events ? undefined : events.run(telling.signal)
      try {
        await Promise.all([schedule(signal), direct.run(signal)])
      } finally {
        telling.abort()
        await told
      }
    },
  }
}
