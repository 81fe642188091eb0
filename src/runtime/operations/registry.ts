// The registry of this process's operations: what its work queues do and wait for. A queue only notes the key of a
// reconcile that starts or ends. For its listeners the registry reads the states of noted keys at most once per second.
// A reconcile that is done within a second therefore costs only two insertions into a set.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { Operation, OperationReference } from '../../api/kinds/operation/operation-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { VolumeCall } from '../../base/operation-details.ts'
import type { ObjectKey } from '../../client/object-key.ts'
import type { KeyState, QueueAttempt } from '../work-queue.ts'
import { activityOfAttempt, activityOfCall, startOf } from './activity-of.ts'
import { type OperationSubject, operationNameOf, operationOf } from './operation-of.ts'

/** The functions with which a queue describes its keys. */
export interface OperationSource {
  /** The component that owns the queue, such as `provisioner`. */
  readonly component: string
  /** The queue's name. */
  readonly queue: string
  /** Returns undefined if the key is done. */
  stateOf(key: ObjectKey): KeyState | undefined
  /**
   * Returns the operation of a key and its object, or undefined if the operation must not be listed. The object of a key must
   * not change its name.
   */
  subjectOf(key: ObjectKey): OperationSubject | undefined
}

/** The connection of a queue to the registry. */
export interface OperationFollower {
  /** Notes that a key's state has changed. */
  note(key: ObjectKey): void
  /** Passes an attempt on a claim, a volume, an attachment or a pod to the listeners for activities. */
  recordAttempt(attempt: QueueAttempt): void
  /** Removes the queue's operations. */
  stop(): void
}

export interface OperationChanges {
  readonly changed: readonly Operation[]
  readonly removed: readonly OperationReference[]
}

export interface OperationRegistry {
  readonly process: string
  follow(source: OperationSource): OperationFollower
  /** Returns the current operations, sorted by namespace and name. */
  list(): readonly Operation[]
  /** Calls the listener with changes, which are collected for up to one second. Returns a function that unsubscribes. */
  subscribe(listener: (changes: OperationChanges) => void): () => void
  /** Passes a call to a CSI driver to the listeners for activities. */
  recordCall(call: VolumeCall): void
  /** Calls the listener with each activity that is recorded, and its start. Returns a function that unsubscribes. */
  subscribeActivities(listener: ActivityListener): () => void
}

export type ActivityListener = (activity: Activity, startMs: number) => void

export interface OperationRegistryOptions {
  /** Identifies this process in its operations. */
  readonly process: string
  readonly clock: Clock
}

const FLUSH_DELAY_MS = 1_000
/** A further operation of this process is listed only if it changes again after another one is done. */
export const OPERATIONS_MAX = 5_000
/** Without a listener, the noted keys are read when a queue has more than this, so that done keys do not accumulate. */
const NOTED_KEYS_MAX = 10_000

interface FollowedQueue {
  readonly source: OperationSource
  /** Identifies the queue among those of this process, which may have the same name. */
  readonly id: string
  readonly notedKeys: Set<ObjectKey>
  readonly listedOperations: Map<ObjectKey, Operation>
}

export function createOperationRegistry({ process, clock }: OperationRegistryOptions): OperationRegistry {
  const queues = new Set<FollowedQueue>()
  const listeners = new Set<(changes: OperationChanges) => void>()
  const activityListeners = new Set<ActivityListener>()
  let listedCount = 0
  let followedCount = 0
  let cancelFlush: (() => void) | undefined

  function flush(): void {
    cancelFlush?.()
    cancelFlush = undefined
    const changed: Operation[] = []
    const removed: OperationReference[] = []
    for (const queue of queues) {
      for (const key of queue.notedKeys) update(queue, key, changed, removed)
      queue.notedKeys.clear()
    }
    emit({ changed, removed })
  }

  function update(queue: FollowedQueue, key: ObjectKey, changed: Operation[], removed: OperationReference[]): void {
    const { source, listedOperations, id } = queue
    const listedOperation = listedOperations.get(key)
    const state = source.stateOf(key)
    const subject = state && !state.isRoutine ? source.subjectOf(key) : undefined
    if (!state || !subject) {
      if (listedOperation) removed.push(remove(queue, key, listedOperation))
      return
    }
    if (!listedOperation && listedCount >= OPERATIONS_MAX) return
    const name = operationNameOf({ process, queue: id }, key, subject.object.name)
    const operation = operationOf(state, subject, { component: source.component, process, name })
    if (!listedOperation) listedCount++
    listedOperations.set(key, operation)
    changed.push(operation)
  }

  function remove({ listedOperations }: FollowedQueue, key: ObjectKey, operation: Operation): OperationReference {
    listedOperations.delete(key)
    listedCount--
    return referenceTo(operation)
  }

  function emit(changes: OperationChanges): void {
    if (changes.changed.length === 0 && changes.removed.length === 0) return
    for (const listener of listeners) listener(changes)
  }

  const scheduleFlush = () => {
    if (listeners.size > 0) cancelFlush ??= clock.after(FLUSH_DELAY_MS, flush)
  }

  return {
    process,
    follow(source) {
      const id = `${source.queue} ${followedCount++}`
      const queue: FollowedQueue = { source, id, notedKeys: new Set(), listedOperations: new Map() }
      queues.add(queue)
      return {
        note(key) {
          queue.notedKeys.add(key)
          if (listeners.size === 0 && queue.notedKeys.size > NOTED_KEYS_MAX) flush()
          else scheduleFlush()
        },
        recordAttempt(attempt) {
          if (activityListeners.size === 0) return
          const subject = source.subjectOf(attempt.key)
          const startMs = startOf(attempt, clock.nowMs())
          const activity = subject && activityOfAttempt(attempt, subject, source.component, startMs)
          if (activity) for (const listener of activityListeners) listener(activity, startMs)
        },
        stop() {
          if (!queues.delete(queue)) return
          listedCount -= queue.listedOperations.size
          emit({ changed: [], removed: [...queue.listedOperations.values()].map(referenceTo) })
        },
      }
    },
    recordCall(call) {
      if (activityListeners.size === 0) return
      const startMs = startOf(call, clock.nowMs())
      const activity = activityOfCall(call, startMs)
      for (const listener of activityListeners) listener(activity, startMs)
    },
    subscribeActivities(listener) {
      activityListeners.add(listener)
      return () => void activityListeners.delete(listener)
    },
    list() {
      flush()
      return [...queues].flatMap(({ listedOperations }) => [...listedOperations.values()]).sort(byNamespaceAndName)
    },
    subscribe(listener) {
      listeners.add(listener)
      scheduleFlush()
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        cancelFlush?.()
        cancelFlush = undefined
      }
    },
  }
}

export const referenceTo = ({ metadata: { namespace = '', name = '' } }: Operation): OperationReference => ({
  namespace,
  name,
})

const sortKeyOf = ({ metadata: { namespace, name } }: Operation): string => `${namespace}/${name}`
const byNamespaceAndName = (a: Operation, b: Operation): number => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1)
