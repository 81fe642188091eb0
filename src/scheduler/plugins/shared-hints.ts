// Queueing hints that several plugins declare. A shared hint runs once per event, even if several plugins rejected the pod.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { BIND_COMPLETED, LAST_FAILURE, SELECTED_NODE } from '../../volumes/names.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { Hint, HintContext, QueueingHint } from '../framework/cluster-events.ts'
import { reasonKey } from '../framework/status.ts'

/** The key of pods that wait for a change to any node. */
export const ANY_NODE: readonly string[] = ['node']
const NO_KEYS: readonly string[] = []

/** A node was added, or a field that plugins read has changed: queue the pod if it fits on that node. */
export const nodeChanged: QueueingHint<'node'> = {
  on: 'node',
  scope: 'class',
  keysOfPod: () => ANY_NODE,
  keysOfEvent: ({ next, old }) => (!next || (old && isEqualForScheduling(old, next)) ? NO_KEYS : ANY_NODE),
  hint: (pod, { next }, context) => hintForNode(pod, next?.metadata.name ?? '', context),
}

/** A pod left its node: queue the waiting pod if it now fits on that node. */
export const podRemovedFromNode: QueueingHint<'podRemoved'> = {
  on: 'podRemoved',
  scope: 'class',
  keysOfPod: () => ANY_NODE,
  keysOfEvent: () => ANY_NODE,
  hint: (pod, { nodeName }, context) => hintForNode(pod, nodeName, context),
}

/** A driver was installed on or removed from a node, or its limit or topology keys changed. */
export const driversChanged: QueueingHint<'csiNode'> = {
  on: 'csiNode',
  scope: 'class',
  keysOfPod: () => ANY_NODE,
  keysOfEvent: ({ next, old }) =>
    JSON.stringify(next?.spec.drivers) === JSON.stringify(old?.spec.drivers) ? [] : ANY_NODE,
  hint: (pod, { next, old }, context) => hintForNode(pod, (next ?? old)?.metadata.name ?? '', context),
}

/** A claim of the pod was created, or a field that plugins read has changed. */
export const claimChanged: QueueingHint<'claim'> = {
  on: 'claim',
  scope: 'pod',
  keysOfPod: claimKeys,
  keysOfEvent: ({ next }) => (next ? [claimKey(keyOfObject(next))] : NO_KEYS),
  hint: (_, { next, old }) => (next && old && bindingOf(next) === bindingOf(old) ? 'skip' : 'queue'),
}

export const claimKey = (key: ObjectKey): string => `claim ${key}`

export function claimKeys({ claims }: PodInfo): string[] {
  return claims.map(({ key }) => claimKey(key))
}

/**
 * Queues the pod if it now fits on this node. Returns a rejection for a new reason, because the pod does not yet wait for
 * the events that can resolve it.
 */
export function hintForNode(pod: PodInfo, nodeName: string, { checkNode, rejection }: HintContext): Hint {
  const result = checkNode(pod, nodeName)
  if (!result) return 'queue'
  if (result === 'no such node') return 'skip'
  const isRecorded =
    rejection.rejectedBy.has(result.plugin) &&
    result.status.reasons.every((reason) => rejection.reasons.has(reasonKey(reason)))
  return isRecorded ? 'skip' : result
}

/** Compares the fields that plugins read. Heartbeats change only other fields. */
export const isEqualForScheduling = (a: Readonly<Node>, b: Readonly<Node>): boolean =>
  JSON.stringify(schedulingFieldsOf(a)) === JSON.stringify(schedulingFieldsOf(b))

const schedulingFieldsOf = ({ metadata, spec, status }: Readonly<Node>): unknown[] => [
  metadata.labels,
  spec?.taints,
  spec?.unschedulable,
  status?.allocatable ?? status?.capacity,
]

const bindingOf = (claim: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    claim.spec?.volumeName,
    claimClassName(claim),
    annotationOf(claim, BIND_COMPLETED),
    annotationOf(claim, SELECTED_NODE),
    annotationOf(claim, LAST_FAILURE),
    claim.status?.phase,
    claim.metadata.ownerReferences,
    claim.metadata.deletionTimestamp === undefined,
  ])
