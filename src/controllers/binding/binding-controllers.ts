// The binding controllers, one for claims (reconcile-claim.ts) and one for volumes (reconcile-volume.ts). There is no
// periodic resync. These changes trigger a reconcile:
//   of a claim    the claim, its volume, its class, the default class, its pods, and a volume that becomes free and
//                 satisfies the claim (claim-waker.ts)
//   of a volume   the volume, its claim, and pods that block its recycling
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { isMarkedDefault } from '../../api/kinds/storage-class/default-class.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createController, createEventRecorder, createSaver, type EventRecorder, source } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { type Claim, claimKeyOf, type Volume } from '../../volumes/matching.ts'
import { createClaimWaker } from './claim-waker.ts'
import { type BindingContext, PODS_BY_CLAIM } from './context.ts'
import { COMPONENT } from './events.ts'
import type { BindingMetrics } from './metrics.ts'
import { createOperationTimes } from './operation-times.ts'
import { isBindCompleted } from './plan-claim.ts'
import type { InProcessProvisioner } from './plan-reclaim.ts'
import { isClaimSettled, reconcileClaim } from './reconcile-claim.ts'
import { isVolumeSettled, reconcileVolume } from './reconcile-volume.ts'
import { RunningProvisioners } from './running-provisioners.ts'
import { createVolumeIndex } from './volume-index.ts'

export interface BindingOptions extends ControllerDeps {
  /** Provisioners that run in this process. No ExternalProvisioning event is recorded for them. */
  readonly inProcessProvisioners: readonly InProcessProvisioner[]
  /** The provisioners whose controllers have registered themselves. By default none. */
  readonly runningProvisioners?: RunningProvisioners
  /** By default these controllers run a recorder for the component persistentvolume-controller. */
  readonly events?: EventRecorder
  readonly bindingMetrics?: BindingMetrics
  /** By default all gates are enabled. */
  readonly gates?: FeatureGates
}

/** Reconciles mostly wait for writes, and concurrent ones share the group commits of the store. */
const WORKERS = 64

const CLAIMS_BY_CLASS = 'binding/class'
const CLAIMS_BY_VOLUME = 'binding/volume'
/** Index key of claims without a class. Not a valid class name. */
const NO_CLASS = 'no class'

export function createBindingControllers(options: BindingOptions) {
  const { client, caches, clock, random, log, metrics, bindingMetrics, inProcessProvisioners } = options
  const eventRecorder = options.events
    ? undefined
    : createEventRecorder({ client, clock, random, log, component: COMPONENT })
  const claims = caches.of(persistentVolumeClaimKind)
  const volumes = caches.of(persistentVolumeKind)
  const classes = caches.of(storageClassKind)
  const pods = caches.of(podKind)
  claims.addIndex(CLAIMS_BY_CLASS, classNamesOf)
  claims.addIndex(CLAIMS_BY_VOLUME, volumeNamesOf)
  pods.addIndex(PODS_BY_CLAIM, claimsOfPod)

  const index = createVolumeIndex(volumes)
  const claimWaker = createClaimWaker(index, (key) => claimController.queue.add(key))
  const operationDeps = { clock, metrics: bindingMetrics }
  const context: BindingContext = {
    clock,
    client,
    save: createSaver({ client, caches: [claims, volumes] }).save,
    claims,
    volumes,
    classes,
    pods,
    index,
    claimWaker,
    events: options.events ?? eventRecorder!,
    metrics: bindingMetrics,
    provisioningTimes: createOperationTimes('provision', operationDeps),
    deletionTimes: createOperationTimes('delete', operationDeps),
    inProcessProvisioners,
    runningProvisioners: options.runningProvisioners ?? new RunningProvisioners(),
    gates: options.gates ?? allGatesOn,
  }
  const sharedOptions = { clock, random, log, metrics, workers: WORKERS }
  const isReleased = (key: string) => volumes.get(key)?.status?.phase === 'Released'

  const claimController = createController({
    ...sharedOptions,
    name: 'claim-binding',
    operation: { component: 'binding', name: 'Bind' },
    sources: [
      source({ cache: claims, keysOf: (claim) => [keyOfObject(claim)], matters: isRelevantChange }),
      source({
        cache: volumes,
        keysOf: (volume) => claimsOfVolume(volume, context),
        matters: isRelevantVolumeChange,
      }),
      source({ cache: classes, keysOf: (storageClass) => claimsOfClass(storageClass, context) }),
      source({ cache: pods, keysOf: (pod) => unboundClaimsOf(pod, context), matters: isNodeOrPhaseChanged }),
    ],
    isSettled: (key) => isClaimSettled(key, context),
    reconcile: (key) => reconcileClaim(key, context),
  })
  const volumeController = createController({
    ...sharedOptions,
    name: 'volume-binding',
    operation: { component: 'binding', name: (_volume, key) => (isReleased(key) ? 'Reclaim' : 'Bind') },
    sources: [
      source({ cache: volumes, keysOf: (volume) => [keyOfObject(volume)], matters: isRelevantVolumeChange }),
      source({ cache: claims, keysOf: (claim) => volumesOfClaim(claim, context), matters: isRelevantChange }),
      source({ cache: pods, keysOf: (pod) => recycledVolumesOf(pod, context), matters: isNodeOrPhaseChanged }),
    ],
    isSettled: (key) => isVolumeSettled(key, context),
    reconcile: (key) => reconcileVolume(key, context),
  })
  const controllers = [claimController, volumeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal: AbortSignal): Promise<void> {
      const stops = [claimWaker.start(), bindingMetrics?.collectFrom({ claims, volumes })]
      try {
        await Promise.all([...controllers.map((controller) => controller.run(signal)), eventRecorder?.run(signal)])
      } finally {
        for (const stop of stops) stop?.()
      }
    },
  }
}

const classNamesOf = (claim: Claim): string[] => (isBindCompleted(claim) ? [] : [claimClassName(claim) ?? NO_CLASS])
const volumeNamesOf = ({ spec }: Claim): string[] => (spec?.volumeName ? [spec.volumeName] : [])

function claimsOfVolume(volume: Volume, { claims }: BindingContext): ObjectKey[] {
  const owner = claimKeyOf(volume)
  const referencingClaims = claims.byIndex(CLAIMS_BY_VOLUME, volume.metadata.name).map(keyOfObject)
  return owner === undefined ? referencingClaims : [owner, ...referencingClaims]
}

function claimsOfClass(storageClass: Readonly<Stored<StorageClass>>, { claims }: BindingContext): ObjectKey[] {
  const claimsWithClass = claims.byIndex(CLAIMS_BY_CLASS, storageClass.metadata.name)
  const claimsWithoutClass = isMarkedDefault(storageClass) ? claims.byIndex(CLAIMS_BY_CLASS, NO_CLASS) : []
  return [...claimsWithClass, ...claimsWithoutClass].map(keyOfObject)
}

const unboundClaimsOf = (pod: Readonly<Pod>, { claims }: BindingContext): ObjectKey[] =>
  claimsOfPod(pod).filter((key) => {
    const claim = claims.get(key)
    return claim !== undefined && !isBindCompleted(claim)
  })

const volumesOfClaim = (claim: Claim, { index }: BindingContext): ObjectKey[] => [
  ...index.reservedFor(keyOfObject(claim)).map(keyOfObject),
  ...volumeNamesOf(claim),
]

const recycledVolumesOf = (pod: Readonly<Pod>, { index }: BindingContext): ObjectKey[] =>
  claimsOfPod(pod)
    .flatMap((key) => index.reservedFor(key))
    .filter(({ spec }) => spec?.persistentVolumeReclaimPolicy === 'Recycle')
    .map(keyOfObject)

/** Ignores finalizers and labels, which do not affect the binding. */
const isRelevantChange = (next: Claim, old: Claim): boolean =>
  next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  !isSame(next.metadata.annotations, old.metadata.annotations) ||
  !isSame(next.spec, old.spec) ||
  !isSame(next.status, old.status)

/** Ignores finalizers, of which the attacher adds one to each volume. Labels decide which claims a volume satisfies. */
const isRelevantVolumeChange = (next: Volume, old: Volume): boolean =>
  next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  !isSame(next.metadata.annotations, old.metadata.annotations) ||
  !isSame(next.metadata.labels, old.metadata.labels) ||
  !isSame(next.spec, old.spec) ||
  !isSame(next.status, old.status)

const isSame = (a: unknown, b: unknown): boolean => jsonEquals(a as JsonValue | undefined, b as JsonValue | undefined)

const isNodeOrPhaseChanged = (next: Readonly<Pod>, old: Readonly<Pod>): boolean =>
  next.spec?.nodeName !== old.spec?.nodeName || next.status?.phase !== old.status?.phase
