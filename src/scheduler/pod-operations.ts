// Reports the pods in the scheduling queue to the operation registry as operations of the scheduler, and records attempts
// that failed for a new reason.
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Clock } from '../base/clock.ts'
import type { AwaitedObject } from '../base/operation-details.ts'
import type { ObjectKey } from '../client/index.ts'
import { type OperationFollower, type OperationRegistry, stuck } from '../runtime/index.ts'
import type { QueuedPodStatus, SchedulingQueue } from './queue/queue.ts'

const STATES = { active: 'ready', 'in flight': 'running', backoff: 'waiting', unschedulable: 'stuck' } as const

/** Follows the queue until the returned function is called. Does nothing without a registry. */
export function followPods(
  queue: SchedulingQueue,
  operations: OperationRegistry | undefined,
  clock: Pick<Clock, 'monotonicMs'>,
): () => void {
  const follower = operations?.follow({
    component: 'scheduler',
    queue: 'scheduling',
    stateOf: (key) => stateOf(queue.status(key)),
    subjectOf: (key) => ({ operation: 'Schedule', object: podRefOf(key, queue.status(key)?.uid) }),
  })
  if (!follower) return () => {}
  const recordAttempt = createAttemptRecorder(follower, clock)
  queue.onChange = (key) => {
    follower.note(key)
    recordAttempt(key, queue.status(key))
  }
  return follower.stop
}

/** Returns a function to call when a pod's state changes. The same message is not recorded again. */
function createAttemptRecorder(
  { recordAttempt }: Pick<OperationFollower, 'recordAttempt'>,
  clock: Pick<Clock, 'monotonicMs'>,
) {
  const startedMs = new Map<ObjectKey, number>()
  const recordedMessages = new Map<ObjectKey, string>()
  return (key: ObjectKey, status: QueuedPodStatus | undefined): void => {
    if (!status) {
      startedMs.delete(key)
      recordedMessages.delete(key)
    } else if (status.state === 'in flight') {
      if (!status.awaited) startedMs.set(key, clock.monotonicMs())
    } else if (status.message !== undefined && status.message !== recordedMessages.get(key)) {
      const durationMs = clock.monotonicMs() - (startedMs.get(key) ?? clock.monotonicMs())
      recordedMessages.set(key, status.message)
      recordAttempt({ key, durationMs, attempt: status.attempts, outcome: stuck(status.message) })
    }
  }
}

function stateOf(status: QueuedPodStatus | undefined) {
  if (!status) return undefined
  const { key, state, awaited, attempts, failures, addedAtMs, nextAtMs, reasons } = status
  const message = awaited?.message ?? status.message
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
    ...(awaited ? { details: { reason: awaited.reason } } : {}),
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
