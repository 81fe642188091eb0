// Reports the condition of the bound volumes of one CSI driver as events on their claims (external-health-monitor). At
// an interval, it calls ListVolumes if the driver has LIST_VOLUMES. If the driver has GET_VOLUME, it calls
// ControllerGetVolume for each volume whose condition is not in the list. With leader election, each term creates a new
// instance.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isMissingRight } from '../../api/status-error.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createWorkQueue, done, type EventRecorder, type Outcome, type WorkQueue } from '../../runtime/index.ts'
import { createVolumeFilter, findSubject, type ServedNode } from '../volume-changes/index.ts'
import { createConditionEvents } from './condition-events.ts'
import type { VolumeHealthMetrics } from './metrics.ts'
import { getCondition, listConditions, type VolumeCondition } from './read-conditions.ts'

export interface VolumeHealthOptions {
  /** Interval between two lists of all volumes. Default 5 min. */
  readonly listIntervalMs?: number
  /** Interval between two calls for one volume, if the driver cannot list volumes. Default 1 min. */
  readonly volumeIntervalMs?: number
  /** Timeout of one driver call. Default 15 s. */
  readonly timeoutMs?: number
  /** Volumes checked at once. Default 10. */
  readonly workers?: number
}

export interface VolumeHealthDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  /** The only node that this instance of the driver serves. By default it serves all nodes. */
  readonly node?: ServedNode
  readonly events: Pick<EventRecorder, 'record'>
  readonly healthMetrics?: VolumeHealthMetrics
  readonly options?: VolumeHealthOptions
}

export interface VolumeHealth {
  readonly queues: readonly WorkQueue[]
  /** Settles after the last running check has finished. */
  run(signal: AbortSignal): Promise<void>
}

/** Whether the driver reports conditions and has a call that returns them. */
export const canMonitorHealth = ({ controller }: DriverFacts): boolean =>
  controller.has('VOLUME_CONDITION') && (controller.has('LIST_VOLUMES') || controller.has('GET_VOLUME'))

/** The queue name of external-health-monitor. */
const QUEUE_NAME = 'csi-monitor-pv-queue'

export function createVolumeHealth(deps: VolumeHealthDeps): VolumeHealth {
  const { client, caches, clock, random, log, metrics, driver, facts, node, options = {} } = deps
  const { timeoutMs = 15_000, workers = 10, listIntervalMs = 300_000, volumeIntervalMs = 60_000 } = options
  const [claims, volumes] = [caches.of(persistentVolumeClaimKind), caches.of(persistentVolumeKind)]
  const conditionEvents = createConditionEvents(clock, deps.events)
  const [canList, canGet] = [facts.controller.has('LIST_VOLUMES'), facts.controller.has('GET_VOLUME')]
  const queue = createWorkQueue({
    name: QUEUE_NAME,
    clock,
    random,
    log,
    workers,
    workerBudget: deps.workerBudget,
    ...(metrics ? { observer: metrics.queueObserver(QUEUE_NAME) } : {}),
  })
  metrics?.queues.add(queue)

  const subjectDeps = { isOwnVolume: createVolumeFilter(facts.name), volumes, node }
  const findOwn = (claimKey: ObjectKey) => {
    const claim = claims.get(claimKey)
    return claim && findSubject(claim, subjectDeps)
  }

  /** Records the conditions that the driver lists, and queues the claims of the other volumes. */
  async function checkAll(signal: AbortSignal): Promise<void> {
    const conditions: ReadonlyMap<string, VolumeCondition> = canList
      ? await listConditions({ driver, timeoutMs, signal })
      : new Map()
    for (const claim of claims.list()) {
      const subject = findSubject(claim, subjectDeps)
      if (!subject) continue
      const condition = conditions.get(subject.volume.spec?.csi?.volumeHandle ?? '')
      if (condition) conditionEvents.record(claim, condition)
      else if (canGet) queue.add(keyOfObject(claim))
    }
  }

  async function checkVolume(claimKey: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const handle = findOwn(claimKey)?.volume.spec?.csi?.volumeHandle
    const condition = handle === undefined ? undefined : await getCondition(handle, { driver, timeoutMs, signal })
    const claim = findOwn(claimKey)?.claim // may have been deleted or bound to another volume during the call
    if (claim && condition) conditionEvents.record(claim, condition)
    return done
  }

  async function checkPeriodically(signal: AbortSignal): Promise<void> {
    await conditionEvents.readEarlierEvents(client, signal).catch((error) => {
      if (!signal.aborted && !isMissingRight(error)) log.warn({ err: error }, 'cannot read earlier events of volumes')
    })
    while (!signal.aborted) {
      await checkAll(signal).catch((error) => {
        if (!signal.aborted) log.warn({ err: error }, 'cannot list the conditions of volumes; retrying')
      })
      await clock.sleep(canList ? listIntervalMs : volumeIntervalMs, signal).catch(() => {})
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const synced = await Promise.all([claims, volumes].map((cache) => cache.whenSynced(signal)))
    if (!synced.every(Boolean)) return
    const unsubscribe = claims.subscribe({ deleted: conditionEvents.forget })
    const monitor = { driverName: facts.name, abnormalVolumes: () => conditionEvents.abnormalCount }
    deps.healthMetrics?.monitors.add(monitor)
    try {
      await Promise.all([queue.run(checkVolume, signal), checkPeriodically(signal)])
    } finally {
      unsubscribe()
      deps.healthMetrics?.monitors.delete(monitor)
    }
  }

  return { queues: [queue], run }
}
