// Looks up the objects of a snapshot for the diagnoses, and evaluates pods with the scheduler's plugins.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import type { Operation } from '../api/kinds/operation/operation-schema.ts'
import { hasTerminated } from '../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import { createVolumeIndex } from '../controllers/binding/index.ts'
import type { Cache } from '../runtime/index.ts'
import { createPodEvaluator, type PodEvaluation, type SchedulerCaches } from '../scheduler/index.ts'
import type { VolumeCandidates } from '../volumes/choose-volume.ts'
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import type { Subject } from './diagnosis.ts'
import type { Snapshot, SnapshotList } from './snapshot.ts'
import { createSnapshotCaches, fixedClock, type SnapshotCaches } from './snapshot-caches.ts'

export type Claim = Readonly<Stored<PersistentVolumeClaim>>
export type StoredPod = Readonly<Stored<Pod>>

export interface Cluster {
  readonly snapshot: Snapshot
  readonly caches: SchedulerCaches
  /** The volumes that the binding controller considers for a claim: free ones, and those whose claimRef names the claim. */
  readonly volumeIndex: VolumeCandidates
  /** Returns the pods that use the claim and have not terminated. */
  podsUsing(claimKey: ObjectKey): readonly StoredPod[]
  /** Returns the events about the object, the newest first. */
  eventsOf(subject: Subject): readonly Readonly<Event>[]
  /** Returns the operations on the object that Stowage components list. A stock API server lists none. */
  operationsOf(subject: Subject): readonly Readonly<Operation>[]
  evaluate(pod: StoredPod): PodEvaluation
  /** Returns the permissions that the user lacks to read the lists. */
  missingRules(...lists: readonly SnapshotList[]): readonly string[]
}

const BY_CLAIM = 'diagnosis/claim'

interface ClusterOptions {
  /** The caches of the snapshot. Default: new ones. */
  readonly caches?: SnapshotCaches
  /** Evaluates a pod on every node. Default: an evaluator with new plugins on the caches. */
  readonly evaluate?: (pod: StoredPod) => PodEvaluation
}

export function createCluster(snapshot: Snapshot, options: ClusterOptions = {}): Cluster {
  const { caches = createSnapshotCaches(snapshot) } = options
  caches.pods.addIndex(BY_CLAIM, claimsOfPod)
  let { evaluate } = options
  const volumeIndex = createVolumeIndex(caches.volumes as Cache<(typeof snapshot.volumes)[number]>)
  volumeIndex.follow(() => {})
  return {
    snapshot,
    caches,
    volumeIndex,
    podsUsing: (claimKey) => caches.pods.byIndex(BY_CLAIM, claimKey).filter((pod) => !hasTerminated(pod)),
    eventsOf: (subject) => newestFirst(snapshot.events.filter((event) => isAbout(event, subject))),
    operationsOf: (subject) => snapshot.operations.filter(({ object }) => isReferenceTo(object, subject)),
    evaluate(pod) {
      evaluate ??= createPodEvaluator({ caches, clock: fixedClock(snapshot.nowMs), random: () => 0 })
      return evaluate(pod)
    },
    missingRules: (...lists) =>
      snapshot.missingRules.filter(({ list }) => lists.includes(list)).map(({ rule }) => rule),
  }
}

const isAbout = ({ involvedObject }: Readonly<Event>, subject: Subject): boolean =>
  isReferenceTo(involvedObject, subject)

interface Reference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
}

const isReferenceTo = (reference: Reference, { kind, namespace, name }: Subject): boolean =>
  reference.kind === kind && reference.name === name && (namespace === undefined || reference.namespace === namespace)

export const timeOfEvent = ({ series, lastTimestamp, eventTime, metadata }: Readonly<Event>): string =>
  series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? ''

const newestFirst = (events: readonly Readonly<Event>[]): readonly Readonly<Event>[] =>
  [...events].sort((a, b) => Date.parse(timeOfEvent(b)) - Date.parse(timeOfEvent(a)))

export const claimSubject = (claim: Claim): Subject => ({
  kind: 'PersistentVolumeClaim',
  namespace: claim.metadata.namespace ?? '',
  name: claim.metadata.name,
})

export const podSubject = (pod: StoredPod): Subject => ({
  kind: 'Pod',
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name,
})

export const keyOf = (object: Claim | StoredPod): ObjectKey => keyOfObject(object)

/** Returns the seconds since the time, or undefined if the time is absent or invalid. */
export function ageSeconds(time: string | undefined, nowMs: number): number | undefined {
  const ms = Date.parse(time ?? '')
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.round((nowMs - ms) / 1000))
}
