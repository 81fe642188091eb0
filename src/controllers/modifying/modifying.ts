// Creates the VolumeChange that modifies the volumes of one CSI driver or plugin (the attributes class, and the claim's own
// iops and throughput): its event sources and its dependencies. reconcile-claim.ts reconciles a claim.
import type { FeatureGates } from '../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import type { DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createSaver, type EventRecorder, type LeaderElection, type Source, source } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { type ChangeThrottle, indexPodsByClaim, type VolumeChange } from '../volume-changes/index.ts'
import type { ModifyingContext } from './context.ts'
import { LastResponses } from './last-responses.ts'
import type { ModifyingMetrics } from './metrics.ts'
import type { ModificationDriver } from './modification-driver.ts'
import { type ModifyingOptions, modifyingSettings } from './options.ts'
import { reconcileClaim } from './reconcile-claim.ts'
import { isWithoutAttributes } from './situation.ts'
import { createStorageClassReader } from './storage-class-reader.ts'

export interface ModifyingDeps extends ControllerDeps {
  /** Must serialize calls per volume (src/csi/serialize-calls.ts). */
  readonly driver: ModificationDriver
  readonly facts: DriverFacts
  /** Default: the volume handle of a CSI volume. */
  readonly volumeIdOf?: ModifyingContext['volumeIdOf']
  readonly gates: FeatureGates
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  readonly modifyingMetrics?: ModifyingMetrics
  /** Shared with the expansion of volumes. */
  readonly throttle?: ChangeThrottle
  readonly options?: ModifyingOptions
}

const BY_CLASS = 'modifying: attributes class'

export function createModifying(deps: ModifyingDeps): VolumeChange {
  const { client, caches, clock, log, driver, facts, gates, events, election, modifyingMetrics, throttle } = deps
  const claims = caches.of(persistentVolumeClaimKind)
  const classes = gates.enabled('VolumeAttributesClass') ? caches.of(volumeAttributesClassKind) : undefined
  const settings = modifyingSettings(deps.options)
  const pods = settings.handlesInUse ? caches.of(podKind) : undefined
  if (pods) indexPodsByClaim(pods)
  claims.addIndex(BY_CLASS, classesOf)
  const volumes = caches.of(persistentVolumeKind)
  const responses = new LastResponses(clock)
  const context: ModifyingContext = {
    driver,
    facts,
    volumeIdOf: deps.volumeIdOf ?? (({ spec }) => spec?.csi?.volumeHandle ?? ''),
    gates,
    settings,
    client,
    clock,
    log,
    events,
    metrics: modifyingMetrics,
    election,
    saver: createSaver({ client, election, caches: [claims, volumes] }),
    throttle,
    claims,
    volumes,
    pods,
    responses,
    readStorageClass: createStorageClassReader({ client, clock }),
    lookUpClass(name) {
      const attributesClass = classes?.get({ name })
      if (attributesClass)
        return { is: 'found', driverName: attributesClass.driverName, parameters: attributesClass.parameters ?? {} }
      return classes?.isSynced ? { is: 'missing' } : { is: 'unknown' }
    },
  }

  const sources: Source[] = []
  if (classes) {
    sources.push(
      source({
        cache: classes,
        keysOf: ({ metadata: { name } }) => claims.byIndex(BY_CLASS, name).map(keyOfObject),
        matters: () => false, // parameters of a class are immutable
        mayBeDisabled: true, // expansion must work on a server that does not serve classes
      }),
    )
  }
  if (pods) {
    const requiresOffline = (key: string) => {
      const claim = claims.get(key)
      return claim !== undefined && responses.requiresOffline(claim)
    }
    sources.push(
      source({
        cache: pods,
        keysOf: (pod) => claimsOfPod(pod).filter(requiresOffline),
        matters: (next, old) => hasTerminated(next) !== hasTerminated(old),
      }),
    )
  }
  return {
    name: 'modifying',
    matters: (next, old) => requestedAttributes(next) !== requestedAttributes(old),
    sources,
    hasNothingToDo: isWithoutAttributes,
    reconcile: (subject, signal) => reconcileClaim(subject, context, signal),
    retryNow: (claim) => responses.endRejection(claim),
  }
}

/** Returns the requested class, the current class, and the target of a modification in progress. */
function classesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}

/** Returns only the user's request, for comparison. The controller's own writes must not reset its backoff. */
const requestedAttributes = ({ spec }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    spec?.volumeAttributesClassName || null,
    ...IO_RESOURCES.map((name) => amountOf(spec?.resources?.requests, name) ?? null),
  ])
