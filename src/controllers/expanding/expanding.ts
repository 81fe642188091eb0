// Creates the VolumeChange that expands the volumes of one CSI driver or plugin: its event sources and its dependencies.
// reconcile-claim.ts reconciles a claim, plan-expansion.ts plans; the node agent calls NodeExpandVolume.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createSaver, type EventRecorder, type LeaderElection, type Source, source } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { INSUFFICIENT_STORAGE, RESIZE_CONDITIONS, resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage, volumeCapacity } from '../../volumes/sizes.ts'
import { buildPublishRequest } from '../attaching/attacher/publish-request.ts'
import { type ChangeThrottle, indexPodsByClaim, type Subject, type VolumeChange } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import type { ExpansionDriver } from './expansion-driver.ts'
import { ExpansionRecords } from './expansion-records.ts'
import { createFreeCapacity } from './free-capacity.ts'
import { LoweredRequests } from './lowered-requests.ts'
import { type ExpandingOptions, expandingSettings } from './options.ts'
import { hasError } from './plan-expansion.ts'
import { reconcileClaim } from './reconcile-claim.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface ExpandingDeps extends ControllerDeps {
  /** Must serialize calls per volume (src/csi/serialize-calls.ts). */
  readonly driver: ExpansionDriver
  readonly facts: DriverFacts
  /** Default: the volume handle and the capability of a CSI volume. */
  readonly fieldsOf?: ExpandingContext['fieldsOf']
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** Shared with the modification of volumes. */
  readonly throttle?: ChangeThrottle
  readonly options?: ExpandingOptions
}

/** Whether the controller service or the node service of the driver expands volumes. */
export const canExpand = ({ controller, node }: DriverFacts): boolean =>
  controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME')

const AWAITING_CAPACITY_BY_CLASS = 'expanding: awaiting capacity, by class'

export function createExpanding(deps: ExpandingDeps): VolumeChange {
  const { client, caches, clock, driver, facts, events, election, throttle } = deps
  const settings = expandingSettings(deps.options)
  const claims = caches.of(persistentVolumeClaimKind)
  const pods = settings.handlesInUse ? caches.of(podKind) : undefined
  const capacityCaches = settings.checksCapacity
    ? { csiDrivers: caches.of(csiDriverKind), capacities: caches.of(csiStorageCapacityKind) }
    : undefined
  if (pods) indexPodsByClaim(pods)
  claims.addIndex(AWAITING_CAPACITY_BY_CLASS, classesIfAwaitingCapacity)
  const volumes = caches.of(persistentVolumeKind)
  const records = new ExpansionRecords()
  const loweredRequests = new LoweredRequests({ client, claims, events })
  const context: ExpandingContext = {
    driver,
    facts,
    fieldsOf: deps.fieldsOf ?? (({ spec = {} }) => buildPublishRequest(spec, facts, '')),
    isNodeOnly: !facts.controller.has('EXPAND_VOLUME'),
    settings,
    client,
    clock,
    events,
    election,
    saver: createSaver({ client, election, caches: [claims, volumes] }),
    throttle,
    claims,
    volumes,
    pods,
    freeCapacity: capacityCaches && createFreeCapacity({ driverName: facts.name, ...capacityCaches }),
    records,
    loweredRequests,
  }

  const hasState = (key: ObjectKey) => records.hasAny(key) || loweredRequests.has(key)
  const sources: Source[] = []
  if (pods) {
    const waitsForPods = (key: string) => {
      const claim = claims.get(key)
      return claim !== undefined && records.requiresOffline(claim)
    }
    sources.push(
      source({
        cache: pods,
        keysOf: (pod) => claimsOfPod(pod).filter(waitsForPods),
        matters: (next, old) => hasTerminated(next) !== hasTerminated(old),
      }),
    )
  }
  if (capacityCaches) {
    sources.push(
      source({
        cache: capacityCaches.capacities,
        keysOf: ({ storageClassName }) => claims.byIndex(AWAITING_CAPACITY_BY_CLASS, storageClassName).map(keyOfObject),
      }),
      source({
        cache: capacityCaches.csiDrivers,
        keysOf: ({ metadata }) =>
          metadata.name === facts.name ? claims.byIndex(AWAITING_CAPACITY_BY_CLASS, ANY_CLASS).map(keyOfObject) : [],
        matters: (next, old) => next.spec.storageCapacity !== old.spec.storageCapacity,
      }),
    )
  }
  return {
    name: 'expanding',
    matters: isRelevantChange,
    sources,
    hasNothingToDo: (subject) => wasNeverExpanded(subject) && !hasState(keyOfObject(subject.claim)),
    reconcile: (subject, signal) => reconcileClaim(subject, context, signal),
    forget(key) {
      records.delete(key)
      records.deleteAttempt(key)
      loweredRequests.delete(key)
    },
    hasState,
    follow: (subjectOf) => loweredRequests.follow(subjectOf),
  }
}

/** Whether the claim has the size of its volume, requests no more, and neither has a status, condition or annotation of an expansion. */
const wasNeverExpanded = ({ claim, volume }: Subject): boolean =>
  claimCapacity(claim) === volumeCapacity(volume) &&
  !isLess(claimCapacity(claim), requestedStorage(claim)) &&
  allocatedStorage(claim) === undefined &&
  resizeStateOf(claim) === undefined &&
  !RESIZE_CONDITIONS.some((type) => resizeCondition(claim, type)) &&
  annotationOf(volume, PRE_RESIZE_CAPACITY) === undefined

/** Index key of all claims whose expansion waits for free capacity, in addition to their class. Not a valid class name. */
const ANY_CLASS = '*'

const classesIfAwaitingCapacity = (claim: Claim): string[] =>
  resizeCondition(claim, 'ControllerResizeError')?.reason === INSUFFICIENT_STORAGE
    ? [claimClassName(claim) ?? '', ANY_CLASS]
    : []

/** Whether a user or a node has changed the claim. The controller's own writes must not reset its backoff. */
const isRelevantChange = (next: Claim, old: Claim): boolean =>
  requestedStorage(next) !== requestedStorage(old) ||
  claimCapacity(next) !== claimCapacity(old) ||
  isBeingDeleted(next) !== isBeingDeleted(old) ||
  (isStaleError(next) && !isStaleError(old)) ||
  (resizeStateOf(next) !== resizeStateOf(old) && !isControllerState(resizeStateOf(next)))

/**
 * Whether the claim has an error that was written after its expansion had ended. While the claim requests more than its
 * capacity, the error is the controller's own write.
 */
const isStaleError = (claim: Claim): boolean =>
  resizeStateOf(claim) === undefined && hasError(claim) && !isLess(claimCapacity(claim), requestedStorage(claim))

const isBeingDeleted = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined

const isControllerState = (state: string | undefined): boolean => state?.startsWith('ControllerResize') ?? false
