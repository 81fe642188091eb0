// Creates the stateful set controller. A change to a set, its pods, its revisions or the claims of its templates triggers a
// reconcile.
import type { KubeObject, Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { controllerRevisionKind } from '../../api/kinds/controller-revision/controller-revision.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  type Cache,
  createController,
  createEventRecorder,
  type EventRecorder,
  type Runnable,
  source,
  withRecorders,
} from '../../runtime/index.ts'
import type { StatefulSetContext } from './context.ts'
import { findController, parseMemberName, SET_KIND } from './identity.ts'
import { indexMembers } from './members.ts'
import { reconcileSet } from './reconcile-set.ts'

interface StatefulSetDeps extends ControllerDeps {
  /** The recorder of events, which the caller runs. By default the controller creates and runs its own. */
  readonly events?: EventRecorder
}

const NAME = 'statefulset'
const COMPONENT = 'statefulset-controller'
/** Sets by namespace and the names of their claims without the ordinal. */
const BY_CLAIM_PREFIX = 'stateful-sets/claim'

export function createStatefulSetController(deps: StatefulSetDeps): Runnable {
  const { client, caches, clock, random, log, metrics } = deps
  const events = deps.events ?? createEventRecorder({ client, clock, random, log, component: COMPONENT })
  const context: StatefulSetContext = {
    client,
    clock,
    events,
    sets: caches.of(statefulSetKind),
    revisions: caches.of(controllerRevisionKind),
    pods: caches.of(podKind),
    claims: caches.of(persistentVolumeClaimKind),
  }
  const { sets, revisions, pods, claims } = context
  indexMembers(context)
  sets.addIndex(BY_CLAIM_PREFIX, claimPrefixes)
  const controller = createController({
    name: NAME,
    operation: { component: 'stateful-sets', name: 'ReconcileSet' },
    clock,
    random,
    log,
    metrics,
    sources: [
      source({ cache: sets, keysOf: (set) => [keyOfObject(set)], mayBeDisabled: true }),
      source({ cache: pods, keysOf: (pod) => setsOfPod(pod, sets) }),
      source({ cache: revisions, keysOf: controllingSet, mayBeDisabled: true }),
      source({ cache: claims, keysOf: (claim) => setsOfClaim(claim, sets) }),
    ],
    reconcile: (key, signal) => reconcileSet(key, context, signal),
  })
  metrics?.queues.add(controller.queue)
  return withRecorders(
    [{ queues: [controller.queue], run: (signal) => controller.run(signal) }],
    deps.events ? [] : [events],
  )
}

/** Returns the set that controls the pod, and the set with a pod of this name, which may adopt the pod or wait for it. */
function setsOfPod(pod: Readonly<Stored<Pod>>, sets: Cache<StatefulSet>): ObjectKey[] {
  if (sets.stats().objects === 0) return []
  const keys = controllingSet(pod)
  const member = parseMemberName(pod.metadata.name)
  const key = member && `${pod.metadata.namespace}/${member.setName}`
  return key && !keys.includes(key) && sets.get(key) ? [...keys, key] : keys
}

function controllingSet(object: Readonly<KubeObject>): ObjectKey[] {
  const controller = findController(object)
  return controller?.kind === SET_KIND ? [`${object.metadata.namespace}/${controller.name}`] : []
}

const claimPrefixes = ({ metadata, spec }: Readonly<StatefulSet>): string[] =>
  (spec?.volumeClaimTemplates ?? []).map(
    (template) => `${metadata.namespace}/${template.metadata.name}-${metadata.name}`,
  )

function setsOfClaim({ metadata }: Readonly<Stored>, sets: Cache<StatefulSet>): ObjectKey[] {
  if (sets.stats().objects === 0) return []
  const member = parseMemberName(metadata.name)
  return member ? sets.byIndex(BY_CLAIM_PREFIX, `${metadata.namespace}/${member.setName}`).map(keyOfObject) : []
}
