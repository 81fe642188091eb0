// Finds the pods and revisions of a stateful set. Adopts those without a controller that match its selector, and releases
// pods that no longer match.
//   controller of the object   matches                    does not match
//   the set                    member                     released, unless the set is being deleted
//   none                       adopted, unless the set    ignored
//                              or the object is being deleted
//   another one                ignored                    ignored
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { controllerRevisionKind } from '../../api/kinds/controller-revision/controller-revision.ts'
import type { ControllerRevision } from '../../api/kinds/controller-revision/controller-revision-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { type LabelSelector, matchesLabels } from '../../api/selectors.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Cache } from '../../runtime/index.ts'
import type { StatefulSetContext } from './context.ts'
import {
  findController,
  isInRange,
  POD_NAME_LABEL,
  parseMemberName,
  podNameOf,
  replicasOf,
  SET_KIND,
  setReference,
  startOrdinal,
} from './identity.ts'

type StoredSet = Readonly<Stored<StatefulSet>>

/** By the uid of the controller, or by namespace and set name for a pod that was orphaned. */
const PODS_OF_SET = 'stateful-sets/set'
/** By the uid of the controller, or by namespace for revisions without one. */
const REVISIONS_OF_SET = 'stateful-sets/set'

export function indexMembers({ pods, revisions }: Pick<StatefulSetContext, 'pods' | 'revisions'>): void {
  pods.addIndex(PODS_OF_SET, (pod) => {
    const controller = findController(pod)
    if (controller) return controller.kind === SET_KIND ? [controller.uid] : []
    const member = pod.metadata.labels?.[POD_NAME_LABEL] && parseMemberName(pod.metadata.name)
    return member ? [orphanKey(pod.metadata.namespace, member.setName)] : []
  })
  revisions.addIndex(REVISIONS_OF_SET, (revision) => {
    const controller = findController(revision)
    return [controller ? controller.uid : orphanKey(revision.metadata.namespace, '')]
  })
}

const orphanKey = (namespace: string | undefined, setName: string): string => `${namespace}/${setName}`

/** Returns the set's pods, after adoption and release. Throws a conflict if a pod has changed since it was read. */
export async function claimPods(
  set: StoredSet,
  selector: LabelSelector,
  context: StatefulSetContext,
): Promise<readonly Readonly<Stored<Pod>>[]> {
  const isMember = (pod: Readonly<Stored<Pod>>) =>
    matchesLabels(selector, pod.metadata.labels) && parseMemberName(pod.metadata.name)?.setName === set.metadata.name
  const members: Readonly<Stored<Pod>>[] = []
  for (const pod of findCandidates(set, context)) {
    const controller = findController(pod)
    if (controller && controller.uid !== set.metadata.uid) continue
    if (isMember(pod)) {
      const member = controller ? pod : await adopt(podKind, pod, set, context, context.pods)
      if (member) members.push(member)
    } else if (controller && !set.metadata.deletionTimestamp) await release(pod, set, context)
  }
  return members
}

/** Returns the pods that the set owns, orphaned pods of an earlier set with this name, and other pods with a name in range. */
function findCandidates(set: StoredSet, { pods }: StatefulSetContext): Iterable<Readonly<Stored<Pod>>> {
  const { uid, namespace, name } = set.metadata
  const candidates = new Set([
    ...pods.byIndex(PODS_OF_SET, uid),
    ...pods.byIndex(PODS_OF_SET, orphanKey(namespace, name)),
  ])
  for (let index = 0; index < replicasOf(set); index++) {
    const pod = pods.get(`${namespace}/${podNameOf(set, startOrdinal(set) + index)}`)
    if (pod) candidates.add(pod)
  }
  return candidates
}

/** Returns the revisions of the set, after adoption. */
export async function claimRevisions(
  set: StoredSet,
  selector: LabelSelector,
  context: StatefulSetContext,
): Promise<readonly Readonly<Stored<ControllerRevision>>[]> {
  const { revisions } = context
  const matches = ({ metadata }: Readonly<KubeObject>) => matchesLabels(selector, metadata.labels)
  const adoptedRevisions: Readonly<Stored<ControllerRevision>>[] = []
  for (const revision of revisions.byIndex(REVISIONS_OF_SET, orphanKey(set.metadata.namespace, '')).filter(matches)) {
    const adoptedRevision = await adopt(controllerRevisionKind, revision, set, context, revisions)
    if (adoptedRevision) adoptedRevisions.push(adoptedRevision)
  }
  const { uid } = set.metadata
  const ownedRevisions = revisions.byIndex(REVISIONS_OF_SET, uid).filter(matches)
  return [...new Map([...ownedRevisions, ...adoptedRevisions].map((item) => [item.metadata.name, item])).values()]
}

/** Makes the set the controller of the object. Returns undefined if the object or the set is being deleted. */
async function adopt<T extends KubeObject>(
  kind: Kind<T>,
  object: Readonly<Stored<T>>,
  set: StoredSet,
  context: StatefulSetContext,
  cache: Cache<T>,
): Promise<Readonly<Stored<T>> | undefined> {
  if (object.metadata.deletionTimestamp || !(await mayAdopt(set, context))) return undefined
  const references = [...(object.metadata.ownerReferences ?? []), setReference(set)]
  return saveOwners(kind, object, references, context, cache)
}

/** Reads the set from the server: the cache may not show yet that the set was deleted or replaced. */
async function mayAdopt({ metadata: { namespace, name, uid } }: StoredSet, { client }: StatefulSetContext) {
  const storedSet = await client.get(statefulSetKind, { namespace, name })
  return storedSet.metadata.uid === uid && !storedSet.metadata.deletionTimestamp
}

function release(pod: Readonly<Stored<Pod>>, set: StoredSet, context: StatefulSetContext): Promise<unknown> {
  const references = (pod.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== set.metadata.uid)
  return saveOwners(podKind, pod, references, context, context.pods)
}

/** Replaces the owner references if the object has not changed. Returns undefined if it no longer exists. */
export async function saveOwners<T extends KubeObject>(
  kind: Kind<T>,
  { metadata: { namespace, name, uid, resourceVersion } }: Readonly<Stored<T>>,
  references: readonly OwnerReference[],
  { client }: Pick<StatefulSetContext, 'client'>,
  cache: Cache<T>,
): Promise<Readonly<Stored<T>> | undefined> {
  const ownerReferences = references.length > 0 ? references : null
  const body = { metadata: { uid, resourceVersion, ownerReferences } }
  try {
    const object = await client.patch(kind, { namespace, name }, { type: 'merge', body })
    cache.applyWriteResult(object)
    return object
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** Whether a pod of this name, in the range of the set, exists but is not one of its pods. */
export function isOccupied(
  set: StoredSet,
  podName: string,
  members: readonly Readonly<Stored<Pod>>[],
  { pods }: StatefulSetContext,
): boolean {
  const ordinal = parseMemberName(podName)?.ordinal
  if (ordinal === undefined || !isInRange(set, ordinal)) return false
  const pod = pods.get(`${set.metadata.namespace}/${podName}`)
  return pod !== undefined && !members.some(({ metadata }) => metadata.name === podName)
}
