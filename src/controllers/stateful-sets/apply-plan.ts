// Applies the plan for a stateful set. Records an event on the set for each change to a pod, each new claim and each failure.
// Every write can be repeated.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { StatefulSetContext } from './context.ts'
import { parseMemberName } from './identity.ts'
import { saveOwners } from './members.ts'
import type { SetAction, SetPlan } from './plan-set.ts'

/**
 * Maximum number of pods in a batch. The first batch has one pod, and each further batch twice as many as the one before: a
 * failure that affects all pods is found early.
 */
const BATCH_MAX = 64

type StoredSet = Readonly<Stored<StatefulSet>>

/** Applies the actions of each pod in order: one pod after the other, or pods in batches if the set is Parallel. */
export async function applyPlan(
  { actions }: SetPlan,
  set: StoredSet,
  context: StatefulSetContext,
  signal: AbortSignal,
): Promise<void> {
  const groups = groupByPod(actions)
  let batchSize = 1
  for (let start = 0; start < groups.length; ) {
    const batch = groups.slice(start, start + batchSize)
    const results = await Promise.allSettled(batch.map((group) => applyActions(group, set, context, signal)))
    const failure = results.find((result) => result.status === 'rejected')
    if (failure) throw failure.reason
    start += batchSize
    if (set.spec?.podManagementPolicy === 'Parallel') batchSize = Math.min(batchSize * 2, BATCH_MAX)
  }
}

/** Groups consecutive actions with the same ordinal: a pod and its claims. */
function groupByPod(actions: readonly SetAction[]): SetAction[][] {
  const groups: SetAction[][] = []
  let groupOrdinal: number | undefined
  for (const action of actions) {
    const ordinal = ordinalOfAction(action)
    const group = groups.at(-1)
    if (group && (ordinal === undefined || ordinal === groupOrdinal)) group.push(action)
    else groups.push([action])
    groupOrdinal = ordinal ?? groupOrdinal
  }
  return groups
}

function ordinalOfAction(action: SetAction): number | undefined {
  switch (action.do) {
    case 'create-claim':
    case 'set-claim-owners':
      return parseMemberName(action.claim.metadata.name ?? '')?.ordinal
    case 'create-pod':
    case 'delete-pod':
    case 'label-pod':
      return parseMemberName(action.pod.metadata.name ?? '')?.ordinal
    case 'report':
      return undefined
  }
}

async function applyActions(
  actions: readonly SetAction[],
  set: StoredSet,
  context: StatefulSetContext,
  signal: AbortSignal,
): Promise<void> {
  for (const action of actions) await applyAction(action, set, context, signal)
}

async function applyAction(
  action: SetAction,
  set: StoredSet,
  context: StatefulSetContext,
  signal: AbortSignal,
): Promise<void> {
  const { client, pods, claims, events } = context
  const setName = set.metadata.name
  switch (action.do) {
    case 'create-claim': {
      const { claim, podName } = action
      const subject = `Claim ${claim.metadata.name}`
      const failure = `create ${subject} for Pod ${podName} in StatefulSet ${setName} failed error`
      const createdClaim = await withFailureEvent(set, context, 'FailedCreate', failure, () =>
        client.create(persistentVolumeClaimKind, claim),
      )
      record('SuccessfulCreate', `create ${subject} Pod ${podName} in StatefulSet ${setName} success`)
      await claims.whenReached(createdClaim.metadata.resourceVersion, signal)
      return
    }
    case 'create-pod': {
      const { pod } = action
      const subject = `create Pod ${pod.metadata.name} in StatefulSet ${setName}`
      const createdPod = await withFailureEvent(set, context, 'FailedCreate', `${subject} failed error`, () =>
        client.create(podKind, pod),
      )
      record('SuccessfulCreate', `${subject} successful`)
      await pods.whenReached(createdPod.metadata.resourceVersion, signal)
      return
    }
    case 'delete-pod': {
      const { namespace, name, uid } = action.pod.metadata
      const subject = `delete Pod ${name} in StatefulSet ${setName}`
      await withFailureEvent(set, context, 'FailedDelete', `${subject} failed error`, async () => {
        const pod = await ignoreReplaced(client.delete(podKind, { namespace, name }, { uid }))
        if (pod) pods.applyWriteResult(pod)
      })
      record('SuccessfulDelete', `${subject} successful`)
      return
    }
    case 'label-pod': {
      const { namespace, name, uid } = action.pod.metadata
      const subject = `update Pod ${name} in StatefulSet ${setName}`
      const body = { metadata: { uid, labels: action.labels } }
      await withFailureEvent(set, context, 'FailedUpdate', `${subject} failed error`, async () => {
        const pod = await ignoreReplaced(client.patch(podKind, { namespace, name }, { type: 'merge', body }))
        if (pod) pods.applyWriteResult(pod)
      })
      record('SuccessfulUpdate', `${subject} successful`)
      return
    }
    case 'set-claim-owners':
      await saveOwners(persistentVolumeClaimKind, action.claim, action.owners, context, claims)
      return
    case 'report':
      events.record(statefulSetKind, set, { type: 'Warning', reason: action.reason, message: action.message })
      return
  }

  function record(reason: string, message: string): void {
    events.record(statefulSetKind, set, { type: 'Normal', reason, message })
  }
}

/** Runs a write. Records an event if it fails, unless the cache was behind: the next reconcile then continues. */
async function withFailureEvent<T>(
  set: StoredSet,
  { events }: StatefulSetContext,
  reason: string,
  failure: string,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!isAlreadyExists(error) && !isConflict(error)) {
      const message = `${failure}: ${(error as Error).message}`
      events.record(statefulSetKind, set, { type: 'Warning', reason, message })
    }
    throw error
  }
}

/** Returns undefined if the pod no longer exists or was replaced by another pod with the same name. */
async function ignoreReplaced<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return undefined
    throw error
  }
}
