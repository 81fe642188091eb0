// Maps changes to nodes and pods to the keys to reconcile, and determines which changes are relevant.
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { heartbeatOf } from './conditions.ts'
import type { NodeLifecycleContext } from './context.ts'
import { mayRemovePodsOf, podsOnNode } from './remove-lost-pods.ts'
import { evictingTaints } from './taints.ts'

export const isHealthChanged = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  heartbeatOf(next) !== heartbeatOf(old) ||
  formatConditions(next) !== formatConditions(old) ||
  JSON.stringify(next.spec?.taints) !== JSON.stringify(old.spec?.taints)

const formatConditions = ({ status }: Readonly<Node>): string =>
  (status?.conditions ?? []).map(({ type, status: value }) => `${type}=${value}`).join()

export const areTaintsChanged = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  JSON.stringify(evictingTaints(next)) !== JSON.stringify(evictingTaints(old))

export const isPodChanged = (next: Readonly<Pod>, old: Readonly<Pod>): boolean =>
  next.spec?.nodeName !== old.spec?.nodeName ||
  next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  JSON.stringify(next.spec?.tolerations) !== JSON.stringify(old.spec?.tolerations)

export const podsOnTaintedNode = (node: Readonly<Node>, { pods }: NodeLifecycleContext): ObjectKey[] =>
  evictingTaints(node).length > 0 ? podsOnNode(pods, keyOfObject(node)).map(keyOfObject) : []

export function keysIfOnTaintedNode(pod: Readonly<Pod>, { nodes, tolerationTimes }: NodeLifecycleContext): ObjectKey[] {
  const key = keyOfObject(pod)
  const isTainted = evictingTaints(nodes.get({ name: pod.spec?.nodeName ?? '' })).length > 0
  return isTainted || tolerationTimes.has(key) ? [key] : []
}

export const missingNodesOf = ({ spec }: Readonly<Pod>, { nodes }: NodeLifecycleContext): string[] =>
  spec?.nodeName && !nodes.get({ name: spec.nodeName }) ? [spec.nodeName] : []

export const keysIfBeingDeleted = (pod: Readonly<Pod>): ObjectKey[] =>
  pod.metadata.deletionTimestamp !== undefined && pod.spec?.nodeName ? [keyOfObject(pod)] : []

export const podsBeingDeletedOutOfService = (node: Readonly<Node>, { pods }: NodeLifecycleContext): ObjectKey[] =>
  mayRemovePodsOf(node) ? podsOnNode(pods, keyOfObject(node)).flatMap(keysIfBeingDeleted) : []
