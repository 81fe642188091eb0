// Selects the node for the WaitForFirstConsumer claims of pods that are created with spec.nodeName and so bypass the
// scheduler. If provisioning fails, the controller selects the same node again, with backoff, because the pod cannot move.
// Claim, class, node and pod may be created in any order: each of them enqueues the claim.

import type { Stored } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { isConfirmedOff } from '../api/kinds/node/fencing.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import type { Node } from '../api/kinds/node/node-schema.ts'
import { hasTerminated } from '../api/kinds/pod/has-terminated.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { annotationOf, claimClassName } from '../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../client/index.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import {
  backOff,
  type Cache,
  type Controller,
  createController,
  done,
  type EventRecorder,
  type Outcome,
  retryAfter,
  source,
  stuck,
} from '../runtime/index.ts'
import { SELECTED_NODE } from '../volumes/names.ts'
import { claimsOf } from './cluster/pod-info.ts'
import { lastFailureRemoval } from './plugins/volume-binding/bind-volumes.ts'
import { isOwnedBy } from './plugins/volume-binding/pod-volumes.ts'

export interface DirectPlacementDeps extends ControllerDeps {
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly classes: Cache<StorageClass>
  readonly nodes: Cache<Node>
  readonly events: EventRecorder
  /** Returns why the pod's volumes do not fit on the node, or undefined if they fit or this cannot be determined. */
  checkVolumes(pod: Readonly<Pod>, nodeName: string): string | undefined
}

const NAME = 'direct-placement'
const BY_CLAIM = 'scheduler/claim-of-placed-pod'
const BY_NODE = 'scheduler/node-of-placed-pod'
const BY_CLASS = 'scheduler/class-of-unbound-claim'
const RETRY = { baseMs: 1_000, maxMs: 300_000 }
const ATTEMPTS_MAX = 10_000 // beyond this the claim with the oldest attempt starts again with a short backoff

/** Returns the claims of a pod that is on a node and has not terminated. */
const claimsOfAssignedPod = (pod: Readonly<Pod>): ObjectKey[] =>
  pod.spec?.nodeName && !hasTerminated(pod) ? claimsOf(pod).map(({ key }) => key) : []

/** Returns the node of a pod with claims that has not terminated. */
const nodeOfPodWithClaims = (pod: Readonly<Pod>): string[] =>
  claimsOfAssignedPod(pod).length > 0 && pod.spec?.nodeName ? [pod.spec.nodeName] : []

/** Returns the class of a claim without a volume. */
function classOfUnboundClaim(claim: Readonly<PersistentVolumeClaim>): string[] {
  const className = claimClassName(claim)
  return className && !claim.spec?.volumeName ? [className] : []
}

export function createDirectPlacement(deps: DirectPlacementDeps): Controller {
  const { pods, claims, classes, nodes, clock, random, log, metrics } = deps
  pods.addIndex(BY_CLAIM, claimsOfAssignedPod)
  pods.addIndex(BY_NODE, nodeOfPodWithClaims)
  claims.addIndex(BY_CLASS, classOfUnboundClaim)
  const attempts: Attempts = new Map()
  const isUnbound = (key: ObjectKey) => {
    const claim = claims.get(key)
    return claim !== undefined && !claim.spec?.volumeName
  }
  const isUsed = (key: ObjectKey) => pods.byIndex(BY_CLAIM, key).length > 0
  const controller = createController({
    name: NAME,
    operation: { component: 'scheduler', name: 'PlaceVolume' },
    clock,
    random,
    log,
    metrics,
    sources: [
      source({
        cache: claims,
        keysOf: (claim) => [keyOfObject(claim)],
        mayNeedReconcile: (claim) => attempts.has(claim.metadata.uid) || isUsed(keyOfObject(claim)),
      }),
      source({
        cache: pods,
        keysOf: claimsOfAssignedPod,
        matters: (next, old) => next.spec?.nodeName !== old.spec?.nodeName,
      }),
      source({
        cache: nodes,
        keysOf: ({ metadata: { name } }) => pods.byIndex(BY_NODE, name).flatMap(claimsOfAssignedPod).filter(isUnbound),
        matters: (next, old) => isConfirmedOff(next) !== isConfirmedOff(old),
      }),
      source({
        cache: classes,
        keysOf: ({ metadata: { name } }) => claims.byIndex(BY_CLASS, name).map(keyOfObject).filter(isUsed),
        matters: (next, old) => next.volumeBindingMode !== old.volumeBindingMode,
      }),
    ],
    reconcile: (key) => reconcileClaim(key, deps, attempts),
  })
  metrics?.queues.add(controller.queue)
  return controller
}

interface Attempt {
  readonly count: number
  readonly notBeforeMs: number
}

/** By claim UID. */
type Attempts = Map<string, Attempt>

async function reconcileClaim(key: ObjectKey, deps: DirectPlacementDeps, attempts: Attempts): Promise<Outcome> {
  const claim = deps.claims.get(key)
  const { uid = '' } = claim?.metadata ?? {}
  if (!claim || claim.spec?.volumeName || claim.metadata.deletionTimestamp) {
    attempts.delete(uid)
    return done
  }
  if (annotationOf(claim, SELECTED_NODE)) return done
  const storageClass = deps.classes.get(claimClassName(claim))
  if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer') return done
  const pod = deps.pods.byIndex(BY_CLAIM, key).find((candidate) => mayUse(candidate, key, claim))
  const nodeName = pod?.spec?.nodeName
  if (!pod || !nodeName) return done
  const node = deps.nodes.get(nodeName)
  if (!node) return reportMissingNode(pod, claim, nodeName, deps)
  if (isConfirmedOff(node))
    return stuck(`pod ${keyOfObject(pod)} is on node ${nodeName}, which is lost`, {
      waitsFor: { kind: nodeKind.kind, name: nodeName },
    })

  const nowMs = deps.clock.monotonicMs()
  const { count = 0, notBeforeMs = 0 } = attempts.get(uid) ?? {}
  if (notBeforeMs > nowMs) return retryAfter(notBeforeMs - nowMs, `provisioning on node ${nodeName} failed`)
  recordAttempt(attempts, uid, { count: count + 1, notBeforeMs: nowMs + backoffMs(RETRY, count, deps.random) })
  const problem = count === 0 ? deps.checkVolumes(pod, nodeName) : undefined
  const outcome = await selectNode(claim, nodeName, deps)
  if (count === 0 && outcome === done) reportSelection(pod, claim, problem, deps)
  return outcome
}

/** Records that the volume is provisioned on the pod's node, and a warning if the scheduler would not choose that node. */
function reportSelection(
  pod: Readonly<Stored<Pod>>,
  { metadata: { name } }: Readonly<Stored<PersistentVolumeClaim>>,
  problem: string | undefined,
  { events }: DirectPlacementDeps,
): void {
  const action = 'Scheduling'
  const place = `node "${pod.spec?.nodeName}", which spec.nodeName of the pod sets`
  const message = `The volume of claim "${name}" is provisioned on ${place}.`
  events.record(podKind, pod, { type: 'Normal', reason: 'NodeSelected', message, action })
  if (problem === undefined) return
  const warning =
    `The volume of claim "${name}" is requested on ${place}, although the scheduler would not choose the node: ${problem}. ` +
    'The pod cannot move: if the volume cannot be created, delete the pod and create it without spec.nodeName.'
  events.record(podKind, pod, { type: 'Warning', reason: 'FailedScheduling', message: warning, action })
}

/** Records an event, because the pod has no scheduler and no node agent that could report the reason. */
function reportMissingNode(
  pod: Readonly<Stored<Pod>>,
  { metadata: { name } }: Readonly<Stored<PersistentVolumeClaim>>,
  nodeName: string,
  { events }: DirectPlacementDeps,
): Outcome {
  const message =
    `Node "${nodeName}" of spec.nodeName does not exist, so no volume is provisioned for claim "${name}": ` +
    'waiting for the node to register. If the name is wrong, delete the pod and create it with another.'
  events.record(podKind, pod, { type: 'Warning', reason: 'FailedScheduling', message, action: 'Scheduling' })
  const waitsFor = { kind: nodeKind.kind, name: nodeName }
  return stuck(`pod ${keyOfObject(pod)} names node ${nodeName}, which does not exist`, { waitsFor })
}

/** Whether the pod uses the claim and is not being deleted. The claim of an ephemeral volume must be owned by the pod. */
const mayUse = (pod: Readonly<Pod>, key: ObjectKey, claim: Readonly<Stored<PersistentVolumeClaim>>): boolean => {
  const podClaim = claimsOf(pod).find((candidate) => candidate.key === key)
  return podClaim !== undefined && !pod.metadata.deletionTimestamp && (!podClaim.isEphemeral || isOwnedBy(claim, pod))
}

function recordAttempt(attempts: Attempts, uid: string, attempt: Attempt): void {
  attempts.delete(uid)
  attempts.set(uid, attempt)
  if (attempts.size > ATTEMPTS_MAX) attempts.delete(attempts.keys().next().value!)
}

async function selectNode(
  claim: Readonly<PersistentVolumeClaim>,
  nodeName: string,
  { client, claims }: DirectPlacementDeps,
): Promise<Outcome> {
  const { uid, resourceVersion } = claim.metadata
  const annotations = { [SELECTED_NODE]: nodeName, ...lastFailureRemoval(claim) }
  const body = { metadata: { uid, resourceVersion, annotations } }
  try {
    const ref = refOfKey(keyOfObject(claim))
    claims.applyWriteResult(await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }))
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the claim changed since it was read')
    throw error
  }
}
