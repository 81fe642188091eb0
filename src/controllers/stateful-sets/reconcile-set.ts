// Reconciles one stateful set: claims its pods and revisions, saves its template's revision, creates and deletes pods
// (plan-set.ts), and writes its status and history.
import type { Stored } from '../../api/kind.ts'
import { controllerRevisionKind } from '../../api/kinds/controller-revision/controller-revision.ts'
import type { ControllerRevision } from '../../api/kinds/controller-revision/controller-revision-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { type LabelSelector, labelSelectorFromObject, SelectorError } from '../../api/selectors.ts'
import { isAlreadyExists, isConflict, isNamespaceTerminating, isNotFound } from '../../api/status-error.ts'
import type { ObjectKey } from '../../client/index.ts'
import { backOff, checkAfter, done, type Outcome, stuck } from '../../runtime/index.ts'
import { applyPlan } from './apply-plan.ts'
import type { StatefulSetContext } from './context.ts'
import { revisionOf } from './identity.ts'
import { claimPods, claimRevisions, isOccupied } from './members.ts'
import { planSet } from './plan-set.ts'
import { calculateStatus, isSameStatus, nextAvailabilityMs } from './plan-status.ts'
import { planHistory, planRevision, type Revision, readTemplate, sortRevisions } from './revisions.ts'

type StoredSet = Readonly<Stored<StatefulSet>>
type StoredRevision = Readonly<Stored<ControllerRevision>>

export async function reconcileSet(key: ObjectKey, context: StatefulSetContext, signal: AbortSignal): Promise<Outcome> {
  const set = context.sets.get(key)
  if (!set) return done
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(set.spec?.selector)
  } catch (error) {
    if (error instanceof SelectorError) return stuck(`the selector of the set is invalid: ${error.message}`)
    throw error
  }
  try {
    return await reconcile(set, selector, context, signal)
  } catch (error) {
    if (isNamespaceTerminating(error)) return done // the set is deleted with its namespace
    if (isConflict(error) || isAlreadyExists(error) || isNotFound(error))
      return backOff(`an object of the set changed during the reconcile: ${(error as Error).message}`)
    throw error
  }
}

async function reconcile(
  set: StoredSet,
  selector: LabelSelector,
  context: StatefulSetContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const pods = await claimPods(set, selector, context)
  if (set.metadata.deletionTimestamp) {
    await saveStatus(set, pods, namesInStatus(set), context)
    return done
  }
  const storedRevisions = sortRevisions(await claimRevisions(set, selector, context))
  const { updateRevision, collisionCount } = await saveRevision(set, storedRevisions, context, signal)
  const currentRevision =
    storedRevisions.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? updateRevision
  const names = {
    currentRevision: currentRevision.metadata.name,
    updateRevision: updateRevision.metadata.name,
    collisionCount,
  }
  const plan = planSet({
    set,
    currentRevision: revisionWithTemplate(currentRevision),
    updateRevision: revisionWithTemplate(updateRevision),
    pods,
    isOccupied: (podName) => isOccupied(set, podName, pods, context),
    findClaim: (name) => context.claims.get(`${set.metadata.namespace}/${name}`),
    nowMs: context.clock.nowMs(),
  })
  const failure = await applyPlan(plan, set, context, signal).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  const remainingPods = await claimPods(set, selector, context)
  await saveStatus(set, remainingPods, names, context)
  if (failure) throw failure.error
  await truncateHistory(set, [...storedRevisions, updateRevision], [...pods, ...remainingPods], names, context)
  const nowMs = context.clock.nowMs()
  const availableMs = nextAvailabilityMs({ set, pods: remainingPods, nowMs })
  return availableMs === undefined
    ? done
    : checkAfter(availableMs - nowMs, 'a ready pod becomes available after minReadySeconds')
}

interface RevisionNames {
  readonly currentRevision: string
  readonly updateRevision: string
  readonly collisionCount: number
}

const namesInStatus = ({ status }: StoredSet): RevisionNames => ({
  currentRevision: status?.currentRevision ?? '',
  updateRevision: status?.updateRevision ?? '',
  collisionCount: status?.collisionCount ?? 0,
})

const revisionWithTemplate = (revision: StoredRevision): Revision => ({
  name: revision.metadata.name,
  template: readTemplate(revision),
})

/** Name collisions are rare: more of them mean that another program creates revisions with these names. */
const COLLISIONS_MAX = 10

/** Saves the current template's revision. Returns it with the number of name collisions, which is part of new names. */
async function saveRevision(
  set: StoredSet,
  storedRevisions: readonly StoredRevision[],
  context: StatefulSetContext,
  signal: AbortSignal,
): Promise<{ updateRevision: StoredRevision; collisionCount: number }> {
  const { client, revisions } = context
  const storedCount = set.status?.collisionCount ?? 0
  for (let collisionCount = storedCount; ; collisionCount++) {
    const action = planRevision(set, storedRevisions, collisionCount)
    switch (action.do) {
      case 'use':
        return { updateRevision: action.revision, collisionCount }
      case 'renumber': {
        const { namespace, name, uid, resourceVersion } = action.revision.metadata
        const body = { metadata: { uid, resourceVersion }, revision: action.number }
        const revision = await client.patch(controllerRevisionKind, { namespace, name }, { type: 'merge', body })
        revisions.applyWriteResult(revision)
        return { updateRevision: revision, collisionCount }
      }
      case 'create':
        try {
          const revision = await client.create(controllerRevisionKind, action.revision)
          await revisions.whenReached(revision.metadata.resourceVersion, signal)
          return { updateRevision: revision, collisionCount }
        } catch (error) {
          if (!isAlreadyExists(error) || collisionCount - storedCount >= COLLISIONS_MAX) throw error
          if (await isOwnRevision(action.revision, set, context)) throw error // the cache is behind
        }
    }
  }
}

/** Whether the stored revision of this name belongs to the set, and not to another object whose hash collides. */
async function isOwnRevision(
  { metadata: { namespace, name = '' } }: ControllerRevision,
  set: StoredSet,
  { client }: StatefulSetContext,
): Promise<boolean> {
  const { metadata } = await client.get(controllerRevisionKind, { namespace, name })
  return metadata.ownerReferences?.some(({ uid }) => uid === set.metadata.uid) ?? false
}

async function saveStatus(
  set: StoredSet,
  pods: readonly Readonly<Pod>[],
  names: RevisionNames,
  { client, sets, clock }: StatefulSetContext,
): Promise<void> {
  const status = calculateStatus({ set, pods, ...names, nowMs: clock.nowMs() })
  if (isSameStatus(set.status, status)) return
  const { namespace, name, uid } = set.metadata
  const patch = { type: 'merge', body: { metadata: { uid }, status } } as const
  sets.applyWriteResult(await client.patch(statefulSetKind, { namespace, name }, patch, { subresource: 'status' }))
}

/** Deletes old revisions beyond the history limit that neither the set nor a pod uses. */
async function truncateHistory(
  set: StoredSet,
  storedRevisions: readonly StoredRevision[],
  pods: readonly Readonly<Pod>[],
  { currentRevision, updateRevision }: RevisionNames,
  { client }: StatefulSetContext,
): Promise<void> {
  const usedNames = new Set([currentRevision, updateRevision, ...pods.map(revisionOf)])
  for (const { metadata } of planHistory(set, storedRevisions, usedNames)) {
    const { namespace, name, uid } = metadata
    try {
      await client.delete(controllerRevisionKind, { namespace, name }, { uid })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
}
