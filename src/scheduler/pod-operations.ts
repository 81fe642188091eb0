// Shows the pods of the scheduling queue as operations of the scheduler in the operation registry.
import { podKind } from '../api/kinds/pod/pod.ts'
import type { AwaitedObject } from '../base/operation-details.ts'
import type { ObjectKey } from '../client/index.ts'
import type { OperationRegistry } from '../runtime/index.ts'
import type { QueuedPodStatus, SchedulingQueue } from './queue/queue.ts'

const STATES = { active: 'ready', 'in flight': 'running', backoff: 'waiting', unschedulable: 'stuck' } as const

/** Follows the queue until the returned function is called. Does nothing without a registry. */
export function followPods(queue: SchedulingQueue, operations: OperationRegistry | undefined): () => void {
  const follower = operations?.follow({
    component: 'scheduler',
    queue: 'scheduling',
    stateOf: (key) => stateOf(queue.status(key)),
    subjectOf: (key) => ({ operation: 'Schedule', object: podRefOf(key, queue.status(key)?.uid) }),
  })
  if (!follower) return () => {}
  queue.onChange = follower.note
  return follower.stop
}

function stateOf(status: QueuedPodStatus | undefined) {
  if (!status) return undefined
  const { key, state, message, attempts, failures, addedAtMs, nextAtMs, reasons } = status
  const waitsFor = awaitedObjectOf(reasons, key)
  return {
    key,
    is: STATES[state],
    attempts,
    failures,
    addedAtMs,
    isRetry: state === 'backoff',
    isRoutine: false,
    ...(message === undefined ? {} : { message }),
    ...(state === 'unschedulable' ? { details: { reason: 'Unschedulable', ...(waitsFor ? { waitsFor } : {}) } } : {}),
    ...(nextAtMs === undefined ? {} : { nextAtMs }),
  }
}

/** The types of reasons that are about a claim of the pod, which is their subject. */
const CLAIM_REASONS: ReadonlySet<string> = new Set([
  'ClaimNotFound',
  'ClaimBeingDeleted',
  'ClaimLost',
  'ClaimNotYetCreated',
])

/** Returns the claim or class without which no node is considered, or undefined if the nodes were rejected. */
function awaitedObjectOf(reasons: readonly string[], podKey: ObjectKey): AwaitedObject | undefined {
  const [namespace = ''] = podKey.split('/')
  for (const reason of reasons) {
    const [type = '', name = '', className = ''] = reason.split(' ')
    if (CLAIM_REASONS.has(type)) return { kind: 'PersistentVolumeClaim', namespace, name }
    if (type === 'StorageClassNotFound') return { kind: 'StorageClass', name: className }
  }
  return undefined
}

function podRefOf(key: ObjectKey, uid: string | undefined) {
  const [namespace = '', name = ''] = key.split('/')
  return { apiVersion: 'v1', kind: podKind.kind, namespace, name, ...(uid ? { uid } : {}) }
}
