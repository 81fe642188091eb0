// Checks stateful sets at rest: the status counts the pods, and the controller has created, deleted and updated every pod that
// the set's order allows.
import { keyOfObject } from '../../../client/index.ts'
import type { ObjectOf } from '../../engine/view.ts'
import { isDeleting, type Problem } from '../context.ts'
import { controllerOf, isReady, ordinalOf } from '../stateful-sets.ts'
import type { AtRestContext } from './index.ts'

const REVISION_LABEL = 'controller-revision-hash'

export function findStatefulSetProblems(set: ObjectOf<'set'>, { view }: AtRestContext): Problem[] {
  const key = keyOfObject(set)
  const createProblem = (rule: Problem['rule'], text: string): Problem[] => [
    { rule, text: `stateful set ${key} ${text}` },
  ]
  if (isDeleting(set)) return createProblem('not deleted', 'is still being deleted')
  const { metadata, spec, status } = set
  const pods = [...view.pods.values()].filter((pod) => controllerOf(pod)?.uid === metadata.uid)
  const revisionCount = (revision: string | undefined) =>
    pods.filter((pod) => pod.metadata.labels?.[REVISION_LABEL] === revision).length
  const expectedStatus = {
    observedGeneration: metadata.generation,
    replicas: pods.length,
    readyReplicas: pods.filter(isReady).length,
    updatedReplicas: revisionCount(status?.updateRevision),
    currentReplicas: revisionCount(status?.currentRevision),
  }
  for (const [name, count] of Object.entries(expectedStatus)) {
    const reportedCount = status?.[name as keyof typeof expectedStatus] ?? 0
    if (reportedCount !== count)
      return createProblem(
        'set status',
        `reports ${name} ${reportedCount}, but it is ${count}: ${JSON.stringify(status)}`,
      )
  }
  const { replicas = 1, podManagementPolicy, updateStrategy } = spec ?? {}
  const isOrdered = podManagementPolicy === 'OrderedReady'
  const podOf = (ordinal: number) => pods.find(({ metadata: { name } }) => ordinalOf(name) === ordinal)
  for (let ordinal = 0; ordinal < replicas; ordinal++) {
    const pod = podOf(ordinal)
    if (!pod && !isBlocked(`${metadata.namespace}/data-${metadata.name}-${ordinal}`))
      return createProblem('missing', `has no pod ${ordinal}, although nothing prevents it`)
    if (isOrdered && !isReady(pod)) return [] // the others wait for this pod
  }
  const condemned = pods.filter(({ metadata: { name } }) => ordinalOf(name) >= replicas)
  if (condemned.length > 0 && (!isOrdered || condemned.every(isReady)))
    return createProblem('not deleted', `still has ${condemned.length} pods beyond ${replicas}`)
  if (updateStrategy?.type !== 'RollingUpdate' || condemned.length > 0 || !pods.every(isReady)) return []
  const outdatedPod = pods.find(
    (pod) =>
      ordinalOf(pod.metadata.name) >= (updateStrategy.rollingUpdate?.partition ?? 0) &&
      pod.metadata.labels?.[REVISION_LABEL] !== status?.updateRevision,
  )
  return outdatedPod ? createProblem('needless wait', `does not update ${keyOfObject(outdatedPod)}`) : []

  /** Whether the claim belongs to an earlier pod or set and has to be deleted first. */
  function isBlocked(claimKey: string): boolean {
    const claim = view.claims.get(claimKey)
    return (
      claim !== undefined &&
      (isDeleting(claim) || (claim.metadata.ownerReferences ?? []).some(({ kind }) => kind === 'Pod'))
    )
  }
}
