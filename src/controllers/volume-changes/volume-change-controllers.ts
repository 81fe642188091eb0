// Runs all kinds of volume change (change.ts) for one CSI driver or plugin on one work queue. The queue key consists of the claim
// and the kind, so that an expansion's backoff does not delay a modification. A lock per volume ensures that two changes of a
// volume never run at once. With leader election, each term creates a new instance.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  createController,
  done,
  type Outcome,
  type Source,
  source,
  stuck,
  type WorkQueue,
} from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { possibleNodeNamesOf } from '../../volumes/node-affinity.ts'
import { VolumeLocks } from '../attaching/attacher/volume-locks.ts'
import type { Subject, VolumeChange } from './change.ts'
import { type VolumeChangeOptions, volumeChangeSettings } from './options.ts'
import { createVolumeFilter, findSubject, isBound, type ServedNode } from './subject.ts'

export interface VolumeChangeDeps extends Omit<ControllerDeps, 'client'> {
  readonly facts: Pick<DriverFacts, 'name'>
  /** Whether a volume is changed here. Default: the CSI driver's volumes. */
  readonly isOwnVolume?: (volume: Readonly<PersistentVolume>) => boolean
  /** The only node that this instance of the driver serves. By default it serves all nodes. */
  readonly node?: ServedNode
  readonly changes: readonly VolumeChange[]
  readonly options?: VolumeChangeOptions
}

export interface VolumeChangeControllers {
  readonly queues: readonly WorkQueue[]
  /** Settles after the last running reconcile has finished. */
  run(signal: AbortSignal): Promise<void>
}

/** Returns the work queue key of a change to a claim's volume. */
export const changeKey = (claim: ObjectKey, change: VolumeChange['name']): string => `${claim}#${change}`

const OPERATION_NAMES = { expanding: 'ExpandController', modifying: 'Modify' } as const

/** Returns the name of the operation that a work queue key identifies. */
const operationNameOf = (key: string): string => OPERATION_NAMES[key.split('#')[1] as VolumeChange['name']]

export function createVolumeChangeControllers(deps: VolumeChangeDeps): VolumeChangeControllers {
  const { caches, clock, random, log, metrics, facts, node, changes } = deps
  const settings = volumeChangeSettings(deps.options)
  const [claims, volumes] = [caches.of(persistentVolumeClaimKind), caches.of(persistentVolumeKind)]
  const isOwnVolume = deps.isOwnVolume ?? createVolumeFilter(facts.name)
  const subjectDeps = { isOwnVolume, volumes, node }
  const findSubjectOf = (claim: Subject['claim']) => findSubject(claim, subjectDeps)
  const locks = new VolumeLocks()

  /** Omits claims with nothing to reconcile, such as most new claims. A key that is in the queue is enqueued again. */
  function keysWithWork(claimKeys: readonly ObjectKey[], change: VolumeChange): string[] {
    const keys: string[] = []
    for (const claimKey of claimKeys) {
      const key = changeKey(claimKey, change.name)
      if (controller.queue.has(key) || mayNeedReconcile(claimKey, change)) keys.push(key)
    }
    return keys
  }

  function mayNeedReconcile(claimKey: ObjectKey, change: VolumeChange): boolean {
    const claim = claims.get(claimKey)
    const subject = claim && findSubjectOf(claim)
    if (subject) return !change.hasNothingToDo?.(subject)
    return change.forget !== undefined && (change.hasState?.(claimKey) ?? true)
  }

  const sourcesOf = (change: VolumeChange): Source[] => [
    source({
      cache: claims,
      keysOf: (claim) => (isBound(claim) ? keysWithWork([keyOfObject(claim)], change) : []),
      matters: (next, old) => isBound(next) !== isBound(old) || change.matters(next, old),
    }),
    source({
      cache: volumes,
      keysOf: (volume) => (isOwnVolume(volume) ? keysWithWork(claimKeysOf(volume), change) : []),
      matters: isVolumeChanged,
    }),
    ...(change.sources ?? []).map(({ keysOf, ...options }) => ({
      ...options,
      keysOf: (object: Readonly<Stored>) => [...keysOf(object)].map((key) => changeKey(key, change.name)),
    })),
  ]

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const [claimKey = '', changeName] = key.split('#')
    const change = changes.find((candidate) => candidate.name === changeName)
    const claim = claims.get(claimKey)
    const subject = claim && findSubjectOf(claim)
    if (!change || !subject) {
      change?.forget?.(claimKey)
      return done
    }
    if (change.hasNothingToDo?.(subject)) return done
    const volumeName = keyOfObject(subject.volume)
    if (!locks.tryLock(volumeName, key)) {
      return stuck(`another change of volume ${volumeName} is in progress`, { isBlockedByOwnWork: true })
    }
    try {
      return await change.reconcile(subject, signal)
    } finally {
      for (const waitingKey of locks.release(volumeName)) controller.queue.add(waitingKey)
    }
  }

  /** The node or zone of the claim's volume, if it has one. */
  function laneOf(key: string): string | undefined {
    const volume = volumes.get(claims.get(key.split('#')[0]!)?.spec?.volumeName ?? '')
    return volume && possibleNodeNamesOf(volume)[0]
  }

  const name = node ? `${facts.name}-${node.name}-pvc` : `${facts.name}-pvc`
  const controller = createController({
    name,
    ...(node ? {} : { laneOf, silentLanes: deps.silentNodes }),
    operation: { component: 'resizer', name: (_claim, key) => operationNameOf(key), cache: claims },
    clock,
    random,
    log,
    ...settings,
    metrics,
    workerBudget: deps.workerBudget,
    sources: changes.flatMap(sourcesOf),
    reads: changes.flatMap(({ reads = [] }) => reads),
    reconcile,
    onRetry(key) {
      const [claimKey = '', changeName] = key.split('#')
      const claim = claims.get(claimKey)
      if (claim) changes.find((change) => change.name === changeName)?.retryNow?.(claim)
    },
  })
  metrics?.queues.add(controller.queue)
  return {
    queues: [controller.queue],
    async run(signal) {
      const stops = changes.map((change) => change.follow?.(findSubjectOf))
      try {
        await controller.run(signal)
      } finally {
        for (const stop of stops) stop?.()
      }
    },
  }
}

function claimKeysOf({ spec }: Readonly<PersistentVolume>): ObjectKey[] {
  const { namespace, name } = spec?.claimRef ?? {}
  return name ? [`${namespace}/${name}`] : []
}

const isVolumeChanged = (next: Readonly<PersistentVolume>, old: Readonly<PersistentVolume>): boolean =>
  next.spec?.claimRef?.uid !== old.spec?.claimRef?.uid ||
  next.spec?.capacity?.storage !== old.spec?.capacity?.storage ||
  annotationOf(next, PRE_RESIZE_CAPACITY) !== annotationOf(old, PRE_RESIZE_CAPACITY)
