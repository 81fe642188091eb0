// Pods whose volumes are being bound, each waiting for its claims. Woken by the objects it waits for, never by polling:
// a change costs what it concerns, however many pods wait.

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { Clock } from '../../../base/clock.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { claimKeyOf, type Volume } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import { getOrMake } from '../../get-or-make.ts'
import type { NodePlan } from './judge-node.ts'
import { type BoundClaim, isBound, type VolumeCaches } from './pod-volumes.ts'
import {
  BOUND_TOO_LATE,
  claimIsDeleted,
  claimIsGone,
  claimNotFound,
  claimRefReset,
  nodeIsGone,
  podIsGone,
  provisioningFailed,
  selectedNodeReset,
  volumeIsElsewhere,
  volumeIsGone,
} from './reasons.ts'

/** What ended the wait; `isPlaceFault` when the same pod may do better elsewhere. */
export class BindingFailed extends Error {
  override readonly name = 'BindingFailed'
  readonly isPlaceFault: boolean
  constructor(message: string, isPlaceFault = false) {
    super(message)
    this.isPlaceFault = isPlaceFault
  }
}

const STOPPING = 'the scheduler is stopping'

export interface Waiting {
  readonly podKey: ObjectKey
  readonly nodeName: string
  readonly plan: NodePlan
  /** Had their volumes when the pod was placed, and must still have them when the others do. */
  readonly bound: readonly BoundClaim[]
  readonly timeoutMs: number
}

interface Wait extends Waiting {
  check(): void
  fail(error: Error): void
}

export class BindingWaits {
  readonly #caches: VolumeCaches
  readonly #cluster: ClusterState
  readonly #clock: Clock
  readonly #byClaim = new Map<ObjectKey, Set<Wait>>()
  readonly #byPod = new Map<ObjectKey, Wait>()
  #isStopped = false

  constructor(caches: VolumeCaches, cluster: ClusterState, clock: Clock) {
    this.#caches = caches
    this.#cluster = cluster
    this.#clock = clock
  }

  get size(): number {
    return this.#byPod.size
  }

  /** Settles when every claim is bound; rejects with a BindingFailed. */
  until(waiting: Waiting): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        cancelTimer()
        this.#leave(wait)
        settle()
      }
      const fail = (error: Error) => end(() => reject(error))
      const check = () => {
        const state = this.#stateOf(waiting)
        if (state === 'bound') end(resolve)
        else if (state !== 'waiting') fail(state)
      }
      const wait: Wait = { ...waiting, check, fail }
      const cancelTimer = this.#clock.after(waiting.timeoutMs, () => fail(new BindingFailed(BOUND_TOO_LATE)))
      this.#enter(wait)
      if (this.#isStopped) fail(new BindingFailed(STOPPING))
      else check()
    })
  }

  /** Ends every wait, and every one that begins from now on. */
  stop(): void {
    this.#isStopped = true
    for (const wait of [...this.#byPod.values()]) wait.fail(new BindingFailed(STOPPING))
  }

  claimChanged(claimKey: ObjectKey): void {
    for (const wait of [...(this.#byClaim.get(claimKey) ?? [])]) wait.check()
  }

  volumeChanged(volume: Volume): void {
    const claimKey = claimKeyOf(volume)
    if (claimKey) this.claimChanged(claimKey)
  }

  podGone(podKey: ObjectKey): void {
    this.#byPod.get(podKey)?.fail(new BindingFailed(podIsGone(podKey)))
  }

  nodeGone(nodeName: string): void {
    for (const wait of [...this.#byPod.values()]) if (wait.nodeName === nodeName) wait.check()
  }

  #stateOf({ plan, bound, nodeName }: Waiting): 'bound' | 'waiting' | BindingFailed {
    const node = this.#cluster.node(nodeName)
    if (!node) return new BindingFailed(nodeIsGone(nodeName), true)
    for (const { key, name, claim } of bound) {
      const now = this.#caches.claims.get(key)
      if (!now || now.metadata.uid !== claim.metadata.uid) return new BindingFailed(claimNotFound(name))
      // No pod on a node uses it yet, so that nothing will keep it.
      if (now.metadata.deletionTimestamp) return new BindingFailed(claimIsDeleted(name))
    }
    let isWaiting = false
    for (const { claim, volume } of plan.bind) {
      const { name = '' } = volume.metadata
      const now = this.#caches.volumes.get(name)
      if (!now) return new BindingFailed(volumeIsGone(name))
      if (!isReachableFrom(now, node)) return new BindingFailed(volumeIsElsewhere(name, nodeName), true)
      if (!now.spec?.claimRef?.uid) return new BindingFailed(claimRefReset(name))
      const taker = this.#caches.claims.get(claim.key)
      if (!taker) return new BindingFailed(claimIsGone(claim.name))
      if (!isBound(taker)) isWaiting = true
    }
    for (const claim of [...plan.make.map((one) => one.claim), ...plan.follow]) {
      const now = this.#caches.claims.get(claim.key)
      if (!now || now.metadata.uid !== claim.claim.metadata.uid) return new BindingFailed(claimIsGone(claim.name))
      if (isBound(now)) {
        const { volumeName = '' } = now.spec ?? {}
        const volume = this.#caches.volumes.get(volumeName)
        if (!volume) isWaiting = true
        else if (!isReachableFrom(volume, node)) return new BindingFailed(volumeIsElsewhere(volumeName, nodeName), true)
        continue
      }
      isWaiting = true
      if (plan.follow.includes(claim)) continue // the pod it follows is the one to judge
      if (!now.metadata.annotations) return new BindingFailed(selectedNodeReset(claim.name), true)
      if (annotationOf(now, SELECTED_NODE) !== nodeName) return new BindingFailed(provisioningFailed(claim.name), true)
    }
    return isWaiting ? 'waiting' : 'bound'
  }

  #enter(wait: Wait): void {
    this.#byPod.set(wait.podKey, wait)
    for (const key of claimKeysOf(wait)) {
      getOrMake(this.#byClaim, key, () => new Set()).add(wait)
    }
  }

  #leave(wait: Wait): void {
    if (this.#byPod.get(wait.podKey) === wait) this.#byPod.delete(wait.podKey)
    for (const key of claimKeysOf(wait)) {
      const waits = this.#byClaim.get(key)
      waits?.delete(wait)
      if (waits?.size === 0) this.#byClaim.delete(key)
    }
  }
}

const claimKeysOf = ({ plan: { bind, make, follow }, bound }: Waiting): ObjectKey[] => [
  ...bound.map(({ key }) => key),
  ...bind.map(({ claim }) => claim.key),
  ...make.map(({ claim }) => claim.key),
  ...follow.map(({ key }) => key),
]
