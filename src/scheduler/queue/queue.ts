// The scheduling queue contains the pods that need a node. Each pod is in one state:
//
//   active ──pop──→ in flight ──bound──→ removed
//     ↑                ├─ all nodes rejected ──→ unschedulable ──queueing hint──→ active
//     └── backoff over ── backoff ←── the attempt failed, or hints requeued the pod too often without success
//
// An unschedulable pod is not retried periodically.

import type { Clock, Random } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { getOrCreate } from '../get-or-create.ts'
import { type IndexKeys, type Rejection, UnschedulablePods } from './unschedulable-pods.ts'

export interface QueuedPod {
  readonly key: ObjectKey
  info: PodInfo
  /** Wall-clock time at which the pod was added. */
  readonly addedAtMs: number
  state: 'active' | 'in flight' | 'backoff' | 'unschedulable'
  /** Scheduling attempts so far. */
  attempts: number
  /** Failed attempts since the pod was added. Reset by retryNow, and by a change to the spec while the pod waits. */
  failures: number
  /** The signature of the equivalence class that the pod represents. The class's next pod is requeued after it. */
  signature: string | undefined
  message: string | undefined
  /** What a pod in flight waits for before it is bound. */
  awaited: AwaitedStep | undefined
  /** The pod after a change while it was in flight. It is evaluated again. */
  updatedInfo: PodInfo | undefined
  /** Monotonic time until which a requeued pod backs off, because it was requeued too often without success. */
  notBeforeMs: number
  /** Monotonic time at which the current backoff ends. */
  dueMs: number
  cancelTimer: (() => void) | undefined
}

/** The reason and message of a step of an attempt that may take long. */
export interface AwaitedStep {
  readonly reason: string
  readonly message: string
}

/** A pod in the queue, for diagnostics. */
export interface QueuedPodStatus {
  readonly key: ObjectKey
  readonly state: QueuedPod['state']
  /** Message of the last failed attempt. */
  readonly message?: string
  /** What a pod in flight waits for before it is bound. */
  readonly awaited?: AwaitedStep
  readonly rejectedBy: readonly string[]
  /** The keys of the reasons (`reasonKey`) for which an unschedulable pod was rejected. */
  readonly reasons: readonly string[]
  readonly uid: string
  readonly attempts: number
  readonly failures: number
  /** Wall-clock time at which the pod was added. */
  readonly addedAtMs: number
  /** Wall-clock time of the next attempt of a pod in backoff. */
  readonly nextAtMs?: number
}

export interface QueueOptions {
  readonly clock: Clock
  readonly random: Random
}

const BACKOFF = { baseMs: 1_000, maxMs: 10_000 }
/** After more consecutive failures than this, a requeued pod backs off. */
const IMMEDIATE_RETRIES_MAX = 10

export class SchedulingQueue {
  readonly #clock: Clock
  readonly #random: Random
  readonly #pods = new Map<ObjectKey, QueuedPod>()
  readonly #active = new Map<number, Set<QueuedPod>>() // by priority
  #priorities: number[] = [] // highest first
  readonly unschedulable = new UnschedulablePods<QueuedPod>()
  /**
   * Called when a pod is popped, waits for a step of its attempt, becomes unschedulable, backs off or is removed. Not called
   * when a pod becomes active, because it is popped soon.
   */
  onChange: ((key: ObjectKey) => void) | undefined
  #wake: (() => void) | undefined
  #attempts = 0
  #backoffCount = 0

  constructor({ clock, random }: QueueOptions) {
    this.#clock = clock
    this.#random = random
  }

  /** Scheduling attempts since the start. */
  get attempts(): number {
    return this.#attempts
  }

  sizes(): { active: number; backoff: number; unschedulable: number } {
    let active = 0
    for (const pods of this.#active.values()) active += pods.size
    return { active, backoff: this.#backoffCount, unschedulable: this.unschedulable.size }
  }

  has(key: ObjectKey): boolean {
    return this.#pods.has(key)
  }

  /** Returns undefined if the pod is not in the queue. */
  uidOf(key: ObjectKey): string | undefined {
    return this.#pods.get(key)?.info.uid
  }

  /** Adds a pod that needs a node, or updates a pod whose spec has changed. */
  add(info: PodInfo): void {
    const existing = this.#pods.get(info.key)
    if (existing?.state === 'in flight') {
      existing.updatedInfo = info
      return
    }
    if (existing) {
      this.#removeFromState(existing)
      this.#requeueNextOfClass(existing)
      existing.info = info
      existing.failures = 0
      existing.signature = undefined
      this.#activate(existing)
      return
    }
    const pod: QueuedPod = {
      key: info.key,
      info,
      addedAtMs: this.#clock.nowMs(),
      state: 'active',
      attempts: 0,
      failures: 0,
      signature: undefined,
      message: undefined,
      awaited: undefined,
      updatedInfo: undefined,
      notBeforeMs: 0,
      dueMs: 0,
      cancelTimer: undefined,
    }
    this.#pods.set(pod.key, pod)
    this.#activate(pod)
  }

  /** Updates the pod after a change to its labels or status, which does not affect scheduling. */
  refresh(info: PodInfo): void {
    const existing = this.#pods.get(info.key)
    if (existing) existing.info = info
  }

  /** Removes a pod that has a node, has terminated or was deleted. */
  remove(key: ObjectKey): void {
    const pod = this.#pods.get(key)
    if (!pod) return
    this.#pods.delete(key)
    this.onChange?.(key)
    this.#removeFromState(pod)
    if (pod.state === 'active' || pod.state === 'backoff') this.#requeueNextOfClass(pod)
  }

  /** Returns the next pod to schedule, and marks it as in flight. */
  pop(): QueuedPod | undefined {
    for (const priority of this.#priorities) {
      const [pod] = this.#active.get(priority) ?? []
      if (!pod) continue
      this.#removeFromState(pod)
      pod.state = 'in flight'
      pod.awaited = undefined
      this.onChange?.(pod.key)
      pod.attempts++
      this.#attempts++
      return pod
    }
    return undefined
  }

  /** Requeues the next pod of this pod's equivalence class, because a node was found for this one. Its binding may still fail. */
  nodeFound(pod: QueuedPod): void {
    this.#requeueNextOfClass(pod)
  }

  /** Sets what a pod in flight waits for before it is bound. */
  setAwaited(pod: QueuedPod, awaited: AwaitedStep): void {
    if (pod.state !== 'in flight' || this.#pods.get(pod.key) !== pod) return
    pod.awaited = awaited
    this.onChange?.(pod.key)
  }

  /** Adds a pod that was rejected on all nodes to the unschedulable pods. */
  addUnschedulable(pod: QueuedPod, rejection: Rejection, keys: IndexKeys): void {
    pod.message = rejection.message
    if (this.#activateIfChanged(pod)) return
    pod.failures++
    const delayMs = backoffMs(BACKOFF, pod.failures - IMMEDIATE_RETRIES_MAX, this.#random)
    pod.notBeforeMs = pod.failures > IMMEDIATE_RETRIES_MAX ? this.#clock.monotonicMs() + delayMs : 0
    if (pod.signature !== rejection.signature) this.#requeueNextOfClass(pod) // the pod no longer represents that class
    pod.state = 'unschedulable'
    this.onChange?.(pod.key)
    pod.signature = rejection.signature
    this.unschedulable.add(pod, rejection, keys)
  }

  /** Retries the pod after a backoff, because the attempt failed for a reason other than rejected nodes. */
  retryAfterBackoff(pod: QueuedPod, message: string): void {
    pod.message = message
    if (this.#activateIfChanged(pod)) return
    pod.failures++
    this.#requeueNextOfClass(pod)
    this.#backOff(pod, backoffMs(BACKOFF, pod.failures - 1, this.#random))
  }

  /** Requeues an unschedulable pod after a queueing hint. */
  requeue(pod: QueuedPod): void {
    if (pod.state !== 'unschedulable' || this.#pods.get(pod.key) !== pod) return
    const waitMs = pod.notBeforeMs - this.#clock.monotonicMs()
    this.unschedulable.takeForRetry(pod.key)
    if (waitMs > 0) this.#backOff(pod, waitMs)
    else this.#activate(pod)
  }

  /** Schedules a waiting pod without further delay, and resets its backoff. A pod in flight is not affected. */
  retryNow(key: ObjectKey): void {
    const pod = this.#pods.get(key)
    if (!pod || pod.state === 'in flight') return
    pod.failures = 0
    pod.notBeforeMs = 0
    if (pod.state === 'unschedulable') this.requeue(pod)
    else if (pod.state === 'backoff') {
      this.#removeFromState(pod)
      this.#activate(pod)
    }
  }

  /** Resolves when there is a pod to pop, or when the signal is aborted. */
  whenReady(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#priorities.some((priority) => (this.#active.get(priority)?.size ?? 0) > 0))
      return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        this.#wake = undefined
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#wake = wake
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  status(key: ObjectKey): QueuedPodStatus | undefined {
    const pod = this.#pods.get(key)
    return pod && this.#statusOf(pod)
  }

  statuses(): QueuedPodStatus[] {
    return [...this.#pods.values()].map((pod) => this.#statusOf(pod))
  }

  stop(): void {
    for (const pod of this.#pods.values()) pod.cancelTimer?.()
  }

  #statusOf(pod: QueuedPod): QueuedPodStatus {
    const { key, state, message, attempts, failures, addedAtMs, dueMs } = pod
    const waitMs = dueMs - this.#clock.monotonicMs()
    const rejection = this.unschedulable.rejectionOf(key)
    return {
      key,
      state,
      message,
      awaited: state === 'in flight' ? pod.awaited : undefined,
      rejectedBy: [...(rejection?.rejectedBy ?? [])],
      reasons: [...(rejection?.reasons ?? [])],
      uid: pod.info.uid,
      attempts,
      failures,
      addedAtMs,
      nextAtMs: state === 'backoff' ? this.#clock.nowMs() + waitMs : undefined,
    }
  }

  /** Activates a pod that changed while it was in flight. Returns true if the pod was changed or removed while in flight. */
  #activateIfChanged(pod: QueuedPod): boolean {
    if (this.#pods.get(pod.key) !== pod) return true
    if (!pod.updatedInfo) return false
    pod.info = pod.updatedInfo
    pod.updatedInfo = undefined
    this.#activate(pod)
    return true
  }

  #activate(pod: QueuedPod): void {
    pod.state = 'active'
    const { priority } = pod.info
    const isNew = !this.#active.has(priority)
    getOrCreate(this.#active, priority, () => new Set()).add(pod)
    if (isNew) this.#priorities = [...this.#active.keys()].sort((a, b) => b - a)
    this.#wake?.()
  }

  #backOff(pod: QueuedPod, ms: number): void {
    pod.state = 'backoff'
    this.onChange?.(pod.key)
    pod.dueMs = this.#clock.monotonicMs() + ms
    this.#backoffCount++
    pod.cancelTimer = this.#clock.after(ms, () => {
      this.#removeFromState(pod)
      this.#activate(pod)
    })
  }

  #removeFromState(pod: QueuedPod): void {
    switch (pod.state) {
      case 'active': {
        const { priority } = pod.info
        const pods = this.#active.get(priority)
        pods?.delete(pod)
        if (pods?.size === 0) {
          this.#active.delete(priority)
          this.#priorities = this.#priorities.filter((other) => other !== priority)
        }
        return
      }
      case 'backoff':
        this.#backoffCount--
        pod.cancelTimer?.()
        pod.cancelTimer = undefined
        return
      case 'unschedulable':
        this.unschedulable.remove(pod.key)
    }
  }

  /** Requeues the next pod of the class that this pod represents. */
  #requeueNextOfClass(pod: QueuedPod): void {
    if (pod.signature === undefined) return
    const next = this.unschedulable.firstOfClass(pod.signature)
    pod.signature = undefined
    if (next) this.requeue(next)
  }
}
