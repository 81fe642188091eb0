// Growing volumes of one CSI driver, as a change of bound claims: what wakes a claim, and what its steps stand on.
// The node's part of a growth is the node agent's (nodeagent/csi/grow.ts).

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type EventRecorder, type LeaderElection, type Source, source } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { INSUFFICIENT_STORAGE, resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { claimCapacity, requestedStorage } from '../../volumes/sizes.ts'
import { type Change, followUsers, isOver, type Pace } from '../volume-changes/index.ts'
import { Answers } from './answers.ts'
import type { ExpandingContext } from './context.ts'
import { LoweredRequests } from './lowered-requests.ts'
import { type ExpandingOptions, expandingSettings } from './options.ts'
import { hasError } from './plan-expansion.ts'
import { reconcileClaim } from './reconcile-claim.ts'
import { createRoom } from './room.ts'

type Claim = Readonly<PersistentVolumeClaim>

export interface ExpandingDeps extends ControllerDeps {
  /** Of which no two calls about one volume run at once (src/csi/serialize-calls.ts). */
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** Shared with other kinds of change. */
  readonly pace?: Pace
  readonly options?: ExpandingOptions
}

/** Whether the driver grows volumes at all, itself or on their nodes. */
export const canExpand = ({ controller, node }: DriverFacts): boolean =>
  controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME')

const BY_CLASS_IN_NEED = 'expanding: class without room'

export function createExpanding(deps: ExpandingDeps): Change {
  const { client, caches, clock, driver, facts, events, election, pace } = deps
  const settings = expandingSettings(deps.options)
  const claims = caches.of(persistentVolumeClaimKind)
  const pods = settings.handlesInUse ? caches.of(podKind) : undefined
  const tracked = settings.checksRoom
    ? { csiDrivers: caches.of(csiDriverKind), capacities: caches.of(csiStorageCapacityKind) }
    : undefined
  if (pods) followUsers(pods)
  claims.addIndex(BY_CLASS_IN_NEED, classInNeed)
  const answers = new Answers()
  const lowered = new LoweredRequests({ client, claims, events })
  const context: ExpandingContext = {
    driver,
    facts,
    isNodeOnly: !facts.controller.has('EXPAND_VOLUME'),
    settings,
    client,
    clock,
    events,
    ...(election ? { election } : {}),
    ...(pace ? { pace } : {}),
    claims,
    volumes: caches.of(persistentVolumeKind),
    ...(pods ? { pods } : {}),
    ...(tracked ? { room: createRoom({ driverName: facts.name, ...tracked }) } : {}),
    answers,
    lowered,
  }

  const sources: Source[] = []
  if (pods) {
    sources.push(
      source({
        cache: pods,
        keysOf: (pod) => claimsOfPod(pod).filter((key) => answers.isOffline(key)),
        matters: (next, old) => isOver(next) !== isOver(old),
      }),
    )
  }
  if (tracked) {
    sources.push(
      source({
        cache: tracked.capacities,
        keysOf: ({ storageClassName }) => claims.byIndex(BY_CLASS_IN_NEED, storageClassName).map(keyOfObject),
      }),
      source({
        cache: tracked.csiDrivers,
        keysOf: ({ metadata }) =>
          metadata.name === facts.name ? claims.byIndex(BY_CLASS_IN_NEED, ANY_CLASS).map(keyOfObject) : [],
        matters: (next, old) => next.spec.storageCapacity !== old.spec.storageCapacity,
      }),
    )
  }
  return {
    name: 'expanding',
    matters: isAnotherWish,
    sources,
    reconcile: (subject, signal) => reconcileClaim(subject, context, signal),
    forget(key) {
      answers.forget(key)
      lowered.forget(key)
    },
    follow: (subjectOf) => lowered.follow(subjectOf),
  }
}

/** Not a name that a class can have. */
const ANY_CLASS = '*'

const classInNeed = (claim: Claim): string[] =>
  resizeCondition(claim, 'ControllerResizeError')?.reason === INSUFFICIENT_STORAGE
    ? [claimClassName(claim) ?? '', ANY_CLASS]
    : []

/** What the controller itself writes does not cut its backoff short; what users and nodes write does. */
const isAnotherWish = (next: Claim, old: Claim): boolean =>
  requestedStorage(next) !== requestedStorage(old) ||
  claimCapacity(next) !== claimCapacity(old) ||
  isGoing(next) !== isGoing(old) ||
  (resizeStateOf(next) === undefined && hasError(next) && !hasError(old)) ||
  (resizeStateOf(next) !== resizeStateOf(old) && !isOurs(resizeStateOf(next)))

const isGoing = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined

const isOurs = (state: string | undefined): boolean => state?.startsWith('ControllerResize') ?? false
