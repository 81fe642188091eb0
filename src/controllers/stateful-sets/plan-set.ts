// Plans the next steps of a stateful set: which pods and claims to create, which pods to delete, and what to wait for. Pure.
//   1. replicas     create missing pods and replace terminated ones, in ascending order
//   2. scale down   delete pods out of range, in descending order
//   3. update       delete pods of another revision, in descending order, as far as maxUnavailable allows
// With OrderedReady a step waits for the one before it, and each pod for its predecessors. With Parallel, no step waits.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { buildClaims, buildPod } from './build-pod.ts'
import { identityLabels, isInRange, ordinalOf, podNameOf, replicasOf, revisionOf, startOrdinal } from './identity.ts'
import { hasConflictingController, isStaleClaim, planClaimOwners } from './plan-claim-owners.ts'
import { isAvailable, isPending, isRunningAndReady, isTerminating } from './pod-state.ts'
import type { Revision } from './revisions.ts'

type StoredPod = Readonly<Stored<Pod>>
type StoredClaim = Readonly<Stored<PersistentVolumeClaim>>

export interface SetSituation {
  readonly set: Readonly<Stored<StatefulSet>>
  readonly currentRevision: Revision
  readonly updateRevision: Revision
  /** The pods that the set controls, named <set>-<ordinal>. */
  readonly pods: readonly StoredPod[]
  /** Whether a pod of this name exists that does not belong to the set. */
  isOccupied(podName: string): boolean
  findClaim(name: string): StoredClaim | undefined
  readonly nowMs: number
}

export type SetAction =
  | { readonly do: 'create-claim'; readonly claim: PersistentVolumeClaim; readonly podName: string }
  | { readonly do: 'create-pod'; readonly pod: Pod }
  | { readonly do: 'delete-pod'; readonly pod: StoredPod; readonly because: 'terminated' | 'scale-down' | 'update' }
  | { readonly do: 'label-pod'; readonly pod: StoredPod; readonly labels: Readonly<Record<string, string>> }
  | { readonly do: 'set-claim-owners'; readonly claim: StoredClaim; readonly owners: readonly OwnerReference[] }
  | { readonly do: 'report'; readonly reason: string; readonly message: string }

export interface SetPlan {
  /** The actions in order. Those of different pods are independent if the set is Parallel. */
  readonly actions: readonly SetAction[]
  /** What the set waits for before it can continue, if anything. */
  readonly waitsFor?: string
}

export function planSet(situation: SetSituation): SetPlan {
  if (situation.set.metadata.deletionTimestamp) return { actions: [] } // the garbage collector deletes the pods
  const plan = new Plan(situation)
  for (const step of [planReplicas, planScaleDown, planUpdate]) {
    step(plan)
    if (plan.isStopped) break
  }
  return { actions: plan.actions, ...(plan.waitsFor ? { waitsFor: plan.waitsFor } : {}) }
}

/** The plan being built. */
class Plan {
  readonly actions: SetAction[] = []
  waitsFor: string | undefined
  isStopped = false
  readonly situation: SetSituation
  readonly isOrdered: boolean
  /** The pods of the ordinals in range, in ascending order. Undefined for a pod that does not exist. */
  readonly replicas: readonly (StoredPod | undefined)[]
  /** The pods out of range, in descending order. */
  readonly podsOutOfRange: readonly StoredPod[]

  constructor(situation: SetSituation) {
    const { set, pods } = situation
    this.situation = situation
    this.isOrdered = set.spec?.podManagementPolicy !== 'Parallel'
    const podsByOrdinal = new Map(pods.map((pod) => [ordinalOf(pod), pod]))
    this.replicas = Array.from({ length: replicasOf(set) }, (_, index) => podsByOrdinal.get(startOrdinal(set) + index))
    this.podsOutOfRange = pods
      .filter((pod) => !isInRange(set, ordinalOf(pod)))
      .sort((a, b) => ordinalOf(b) - ordinalOf(a))
  }

  /** Waits for a condition. With OrderedReady, the plan stops; with Parallel, other pods continue. */
  wait(reason: string): void {
    this.waitsFor ??= reason
    if (this.isOrdered) this.isStopped = true
  }

  isAvailable(pod: StoredPod | undefined): boolean {
    const { set, nowMs } = this.situation
    return pod !== undefined && !isTerminating(pod) && isAvailable(pod, set.spec?.minReadySeconds ?? 0, nowMs)
  }
}

function planReplicas(plan: Plan): void {
  for (const [index, pod] of plan.replicas.entries()) {
    const ordinal = startOrdinal(plan.situation.set) + index
    if (pod) planExistingPod(plan, pod, ordinal)
    else planMissingPod(plan, ordinal)
    if (plan.isStopped) return
  }
}

function planMissingPod(plan: Plan, ordinal: number): void {
  const { set, isOccupied } = plan.situation
  const podName = podNameOf(set, ordinal)
  if (isOccupied(podName)) {
    plan.wait(`pod ${podName}, which does not belong to the set, to be deleted`)
    return
  }
  if (!planClaims(plan, podName, ordinal)) return
  plan.actions.push({ do: 'create-pod', pod: buildPod(set, revisionFor(plan.situation, ordinal), ordinal) })
  plan.wait(`pod ${podName} to become available`)
}

/** Plans the claims of a pod that is missing or pending. Returns false if the pod has to wait for a claim. */
function planClaims(plan: Plan, podName: string, ordinal: number, pod?: StoredPod): boolean {
  const { set, findClaim } = plan.situation
  const isScaledDown = false
  const actions: SetAction[] = []
  for (const claim of buildClaims(set, ordinal)) {
    const name = claim.metadata.name ?? ''
    const storedClaim = findClaim(name)
    if (!storedClaim) {
      const owners = planClaimOwners({ claim, set, podName, isScaledDown })
      const metadata = { ...claim.metadata, ...(owners ? { ownerReferences: [...owners] } : {}) }
      actions.push({ do: 'create-claim', claim: { ...claim, metadata }, podName })
      continue
    }
    const input = { claim: storedClaim, set, podName, pod, isScaledDown }
    if (!pod && (storedClaim.metadata.deletionTimestamp || isStaleClaim(input))) {
      const message = `create Pod ${podName} in StatefulSet ${set.metadata.name} failed error: pvc ${name} is being deleted`
      plan.actions.push({ do: 'report', reason: 'FailedCreate', message })
      plan.wait(`claim ${name}, which belongs to an earlier pod or set, to be deleted`)
      return false
    }
    if (hasConflictingController(input)) actions.push(conflictReport(name))
    const owners = planClaimOwners(input)
    if (owners) actions.push({ do: 'set-claim-owners', claim: storedClaim, owners })
  }
  plan.actions.push(...actions)
  return true
}

const conflictReport = (claimName: string): SetAction => ({
  do: 'report',
  reason: 'ConflictingController',
  message:
    `PersistentVolumeClaim ${claimName} has a conflicting OwnerReference that acts as a managing controller, ` +
    'the retention policy is ignored for this claim',
})

/** Returns a new pod's revision. Pods below the partition keep the current revision. */
function revisionFor({ set, currentRevision, updateRevision }: SetSituation, ordinal: number): Revision {
  const { type, rollingUpdate } = set.spec?.updateStrategy ?? {}
  if (type !== 'RollingUpdate') return updateRevision
  const keptReplicas = rollingUpdate ? (rollingUpdate.partition ?? 0) : (set.status?.currentReplicas ?? 0)
  return ordinal < startOrdinal(set) + keptReplicas ? currentRevision : updateRevision
}

function planExistingPod(plan: Plan, pod: StoredPod, ordinal: number): void {
  const { name } = pod.metadata
  if (hasTerminated(pod)) {
    if (!isTerminating(pod)) plan.actions.push({ do: 'delete-pod', pod, because: 'terminated' })
    plan.wait(`pod ${name}, which has terminated, to be deleted`)
    return
  }
  planIdentity(plan, pod, ordinal)
  if (isPending(pod) && !isTerminating(pod)) planClaims(plan, name, ordinal, pod)
  else planOwners(plan, pod, ordinal, { isScaledDown: false })
  if (isTerminating(pod)) plan.wait(`pod ${name} to terminate`)
  else if (!isRunningAndReady(pod)) plan.wait(`pod ${name} to become ready`)
  else if (!plan.isAvailable(pod))
    plan.wait(`pod ${name} to be ready for ${plan.situation.set.spec?.minReadySeconds} s`)
}

/** Plans the labels of a pod that was adopted or lost its labels. */
function planIdentity(plan: Plan, pod: StoredPod, ordinal: number): void {
  const labels = identityLabels(pod.metadata.name, ordinal)
  const isLabeled = Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value)
  if (!isLabeled && !isTerminating(pod)) plan.actions.push({ do: 'label-pod', pod, labels })
}

/** Plans the owners of a pod's existing claims. */
function planOwners(plan: Plan, pod: StoredPod, ordinal: number, { isScaledDown }: { isScaledDown: boolean }): void {
  const { set, findClaim } = plan.situation
  for (const { metadata } of buildClaims(set, ordinal)) {
    const claim = findClaim(metadata.name ?? '')
    if (!claim) continue
    const input = { claim, set, podName: pod.metadata.name, pod, isScaledDown }
    if (isScaledDown && !isTerminating(pod) && hasConflictingController(input))
      plan.actions.push(conflictReport(claim.metadata.name))
    const owners = planClaimOwners(input)
    if (owners) plan.actions.push({ do: 'set-claim-owners', claim, owners })
  }
}

function planScaleDown(plan: Plan): void {
  const { podsOutOfRange, replicas } = plan
  // The owners come first: after a pod is deleted, the claims of its ordinal are no longer planned and would be retained.
  for (const pod of podsOutOfRange) planOwners(plan, pod, ordinalOf(pod), { isScaledDown: true })
  const firstUnavailable =
    replicas.find((pod) => pod && !plan.isAvailable(pod)) ?? podsOutOfRange.findLast((pod) => !plan.isAvailable(pod))
  for (const pod of podsOutOfRange) {
    const { name } = pod.metadata
    const isBlocked = plan.isOrdered && pod !== firstUnavailable && !(isRunningAndReady(pod) && plan.isAvailable(pod))
    if (isTerminating(pod)) plan.wait(`pod ${name} to terminate`)
    else if (isBlocked) plan.wait(`pod ${firstUnavailable?.metadata.name} to become available`)
    else {
      plan.actions.push({ do: 'delete-pod', pod, because: 'scale-down' })
      plan.wait(`pod ${name} to terminate`)
    }
    if (plan.isStopped) return
  }
}

/** Plans the deletion of pods with a revision other than the update revision. Missing pods count as unavailable. */
function planUpdate(plan: Plan): void {
  const { set, updateRevision } = plan.situation
  const { type, rollingUpdate } = set.spec?.updateStrategy ?? {}
  if (type !== 'RollingUpdate') return
  const isOutdated = (pod: StoredPod | undefined): pod is StoredPod =>
    pod !== undefined && revisionOf(pod) !== updateRevision.name && !isTerminating(pod) && !hasTerminated(pod)
  const outdatedPods = plan.replicas
    .slice(rollingUpdate?.partition ?? 0)
    .filter(isOutdated)
    .reverse()
  const unavailableCount = plan.replicas.filter((pod) => !plan.isAvailable(pod)).length
  let remaining = maxUnavailableOf(rollingUpdate?.maxUnavailable, replicasOf(set)) - unavailableCount
  for (const pod of outdatedPods) {
    // With Parallel, an unavailable pod is replaced immediately: it is counted already. OrderedReady has waited for it.
    if (plan.isAvailable(pod)) {
      if (remaining <= 0) continue
      remaining--
    }
    plan.actions.push({ do: 'delete-pod', pod, because: 'update' })
  }
}

/** Returns the number of pods that may be unavailable; at least 1. A percentage is rounded down. */
export function maxUnavailableOf(maxUnavailable: number | string = 1, replicas: number): number {
  const count =
    typeof maxUnavailable === 'number'
      ? maxUnavailable
      : Math.floor((Number.parseInt(maxUnavailable, 10) * replicas) / 100)
  return Math.max(1, count || 0)
}
