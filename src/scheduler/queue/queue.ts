// Pods that want a node. Each is in one place:
//
//   active ──taken──→ in hand ──placed──→ gone
//     ↑                  ├─ no node would do ──→ unschedulable ──something could help──→ active
//     └── time is up ── backing off ←── went wrong, or has been helped in vain too often
//
// An unschedulable pod is never tried on a timer alone.

import type { Clock, Random } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import { getOrMake } from '../get-or-make.ts'
import type { PodFacts } from '../pod-facts.ts'
import { type Interests, ParkedPods, type Rejection } from './parked-pods.ts'

export interface QueuedPod {
  readonly key: ObjectKey
  facts: PodFacts
  state: 'active' | 'in hand' | 'backing off' | 'unschedulable'
  /** Searches for a node, so far. */
  attempts: number
  /** Since it was last in hand: how often in a row it did not end well. */
  failures: number
  /** Tried on account of pods like it, which are tried after it. */
  likeness: string | undefined
  because: string | undefined
  /** Changed while in hand: it is looked at again. */
  next: PodFacts | undefined
  /** By the monotonic clock: not tried before, when it has been helped in vain too often. */
  notBeforeMs: number
  dueMs: number
  cancelTimer: (() => void) | undefined
}

/** Where a pod stands, for `why` and the console. */
export interface PodStanding {
  readonly key: ObjectKey
  readonly is: QueuedPod['state']
  readonly because?: string
  readonly rejectedBy: readonly string[]
  readonly attempts: number
  /** When a pod that is backing off is tried again, by the wall clock. */
  readonly nextAtMs?: number
}

export interface QueueOptions {
  readonly clock: Clock
  readonly random: Random
}

const BACKOFF = { baseMs: 1_000, maxMs: 10_000 }
/** Helped in vain more often than this in a row, a pod is tried no more often than its backoff allows. */
const EAGER_FAILURES_MAX = 10

export class SchedulingQueue {
  readonly #clock: Clock
  readonly #random: Random
  readonly #pods = new Map<ObjectKey, QueuedPod>()
  readonly #active = new Map<number, Set<QueuedPod>>() // by priority
  #priorities: number[] = [] // the highest first
  readonly parked = new ParkedPods<QueuedPod>()
  #wake: (() => void) | undefined
  #attempts = 0
  #backingOff = 0

  constructor({ clock, random }: QueueOptions) {
    this.#clock = clock
    this.#random = random
  }

  /** Searches for a node since the start. */
  get attempts(): number {
    return this.#attempts
  }

  sizes(): { active: number; backoff: number; unschedulable: number } {
    let active = 0
    for (const pods of this.#active.values()) active += pods.size
    return { active, backoff: this.#backingOff, unschedulable: this.parked.size }
  }

  has(key: ObjectKey): boolean {
    return this.#pods.has(key)
  }

  /** A pod that wants a node, new or changed in what it wants. */
  add(facts: PodFacts): void {
    const known = this.#pods.get(facts.key)
    if (known?.state === 'in hand') {
      known.next = facts
      return
    }
    if (known) {
      this.#leave(known)
      this.#passOn(known)
      known.facts = facts
      known.failures = 0
      known.likeness = undefined
      this.#activate(known)
      return
    }
    const pod: QueuedPod = {
      key: facts.key,
      facts,
      state: 'active',
      attempts: 0,
      failures: 0,
      likeness: undefined,
      because: undefined,
      next: undefined,
      notBeforeMs: 0,
      dueMs: 0,
      cancelTimer: undefined,
    }
    this.#pods.set(pod.key, pod)
    this.#activate(pod)
  }

  /** The same pod with other labels or status: nothing about it needs to be judged anew. */
  refresh(facts: PodFacts): void {
    const known = this.#pods.get(facts.key)
    if (known) known.facts = facts
  }

  /** The pod wants nothing any more: it has a node, or is gone. */
  remove(key: ObjectKey): void {
    const pod = this.#pods.get(key)
    if (!pod) return
    this.#pods.delete(key)
    this.#leave(pod)
    if (pod.state === 'active' || pod.state === 'backing off') this.#passOn(pod)
  }

  /** The one to be tried next. */
  take(): QueuedPod | undefined {
    for (const priority of this.#priorities) {
      const [pod] = this.#active.get(priority) ?? []
      if (!pod) continue
      this.#leave(pod)
      pod.state = 'in hand'
      pod.attempts++
      this.#attempts++
      return pod
    }
    return undefined
  }

  /** A node was found: those that are alike may find one too. */
  found(pod: QueuedPod): void {
    pod.failures = 0
    this.#passOn(pod)
  }

  /** No node would do. */
  park(pod: QueuedPod, rejection: Rejection, interests: Interests): void {
    pod.because = rejection.because
    if (this.#isSuperseded(pod)) return
    pod.failures++
    const delayMs = backoffMs(BACKOFF, pod.failures - EAGER_FAILURES_MAX, this.#random)
    pod.notBeforeMs = pod.failures > EAGER_FAILURES_MAX ? this.#clock.monotonicMs() + delayMs : 0
    if (pod.likeness !== rejection.likeness) this.#passOn(pod) // it turned out to be unlike the others
    pod.state = 'unschedulable'
    pod.likeness = rejection.likeness
    this.parked.park(pod, rejection, interests)
  }

  /** Something went wrong that is not about nodes: tried again after a while. */
  retryLater(pod: QueuedPod, because: string): void {
    pod.because = because
    if (this.#isSuperseded(pod)) return
    pod.failures++
    this.#passOn(pod)
    this.#backOff(pod, backoffMs(BACKOFF, pod.failures - 1, this.#random))
  }

  /** Something changed that could help it. */
  help(pod: QueuedPod): void {
    if (pod.state !== 'unschedulable' || this.#pods.get(pod.key) !== pod) return
    const waitMs = pod.notBeforeMs - this.#clock.monotonicMs()
    this.parked.takeToTry(pod.key)
    if (waitMs > 0) this.#backOff(pod, waitMs)
    else this.#activate(pod)
  }

  /** Until there is something to take, or the signal fires. */
  whenReady(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#priorities.some((one) => (this.#active.get(one)?.size ?? 0) > 0))
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

  standing(key: ObjectKey): PodStanding | undefined {
    const pod = this.#pods.get(key)
    return pod && this.#standingOf(pod)
  }

  standings(): PodStanding[] {
    return [...this.#pods.values()].map((pod) => this.#standingOf(pod))
  }

  stop(): void {
    for (const pod of this.#pods.values()) pod.cancelTimer?.()
  }

  #standingOf(pod: QueuedPod): PodStanding {
    const { key, state, because, attempts, dueMs } = pod
    const inMs = dueMs - this.#clock.monotonicMs()
    return {
      key,
      is: state,
      ...(because === undefined ? {} : { because }),
      rejectedBy: [...(this.parked.rejectionOf(key)?.rejectedBy ?? [])],
      attempts,
      ...(state === 'backing off' ? { nextAtMs: this.#clock.nowMs() + inMs } : {}),
    }
  }

  /** Whether the pod went away or changed while it was in hand. */
  #isSuperseded(pod: QueuedPod): boolean {
    if (this.#pods.get(pod.key) !== pod) return true
    if (!pod.next) return false
    pod.facts = pod.next
    pod.next = undefined
    this.#activate(pod)
    return true
  }

  #activate(pod: QueuedPod): void {
    pod.state = 'active'
    const { priority } = pod.facts
    const isNew = !this.#active.has(priority)
    getOrMake(this.#active, priority, () => new Set()).add(pod)
    if (isNew) this.#priorities = [...this.#active.keys()].sort((a, b) => b - a)
    this.#wake?.()
  }

  #backOff(pod: QueuedPod, ms: number): void {
    pod.state = 'backing off'
    pod.dueMs = this.#clock.monotonicMs() + ms
    this.#backingOff++
    pod.cancelTimer = this.#clock.after(ms, () => {
      this.#leave(pod)
      this.#activate(pod)
    })
  }

  #leave(pod: QueuedPod): void {
    switch (pod.state) {
      case 'active': {
        const { priority } = pod.facts
        const pods = this.#active.get(priority)
        pods?.delete(pod)
        if (pods?.size === 0) {
          this.#active.delete(priority)
          this.#priorities = this.#priorities.filter((one) => one !== priority)
        }
        return
      }
      case 'backing off':
        this.#backingOff--
        pod.cancelTimer?.()
        pod.cancelTimer = undefined
        return
      case 'unschedulable':
        this.parked.remove(pod.key)
    }
  }

  /** The next of those that are alike is tried, in place of this one or after it. */
  #passOn(pod: QueuedPod): void {
    if (pod.likeness === undefined) return
    const next = this.parked.firstLike(pod.likeness)
    pod.likeness = undefined
    if (next) this.help(next)
  }
}
