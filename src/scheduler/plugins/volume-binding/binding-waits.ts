// Waits in preBind until all claims of a pod are bound. Checked when an object it waits for changes, never by polling: a
// change costs time in proportion to the waits it affects, not to all waiting pods.

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { Clock } from '../../../base/clock.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { claimKeyOf, type Volume } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { NodePlan } from './node-planner.ts'
import { type BoundClaim, isBound, type VolumeCaches } from './pod-volumes.ts'
import {
  BIND_TIMEOUT,
  bindingVolumeNotFound,
  claimBeingDeleted,
  claimNotFound,
  claimRefReset,
  nodeNotFound,
  podDeleted,
  provisioningClaimNotFound,
  provisioningFailed,
  SCHEDULER_STOPPING,
  selectedNodeReset,
  volumeNodeMismatch,
} from './reasons.ts'

export class BindingError extends Error {
  override readonly name = 'BindingError'
  /** The pod may succeed on another node. */
  readonly isNodeFault: boolean
  constructor(message: string, { isNodeFault = false } = {}) {
    super(message)
    this.isNodeFault = isNodeFault
  }
}

const nodeFault = (message: string): BindingError => new BindingError(message, { isNodeFault: true })

export interface Waiting {
  readonly podKey: ObjectKey
  readonly nodeName: string
  readonly plan: NodePlan
  /** Were bound before the pod got its node, and must still be when the others are. */
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

  /** Resolves when every claim is bound; rejects with a BindingError. */
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
      const cancelTimer = this.#clock.after(waiting.timeoutMs, () => fail(new BindingError(BIND_TIMEOUT)))
      this.#enter(wait)
      if (this.#isStopped) fail(new BindingError(SCHEDULER_STOPPING))
      else check()
    })
  }

  /** Fails every wait, and every later one. */
  stop(): void {
    this.#isStopped = true
    for (const wait of [...this.#byPod.values()]) wait.fail(new BindingError(SCHEDULER_STOPPING))
  }

  claimChanged(claimKey: ObjectKey): void {
    for (const wait of [...(this.#byClaim.get(claimKey) ?? [])]) wait.check()
  }

  volumeChanged(volume: Volume): void {
    const claimKey = claimKeyOf(volume)
    if (claimKey) this.claimChanged(claimKey)
  }

  podDeleted(podKey: ObjectKey): void {
    this.#byPod.get(podKey)?.fail(new BindingError(podDeleted(podKey)))
  }

  nodeDeleted(nodeName: string): void {
    for (const wait of [...this.#byPod.values()]) if (wait.nodeName === nodeName) wait.check()
  }

  #stateOf({ plan, bound, nodeName }: Waiting): 'bound' | 'waiting' | BindingError {
    const node = this.#cluster.node(nodeName)
    if (!node) return nodeFault(nodeNotFound(nodeName))
    for (const { key, name, claim } of bound) {
      const now = this.#caches.claims.get(key)
      if (!now || now.metadata.uid !== claim.metadata.uid) return new BindingError(claimNotFound(name).message)
      // No pod on a node uses it yet, so protection does not keep it.
      if (now.metadata.deletionTimestamp) return new BindingError(claimBeingDeleted(name).message)
    }
    let isWaiting = false
    for (const { claim, volume } of plan.bind) {
      const { name = '' } = volume.metadata
      const now = this.#caches.volumes.get(name)
      if (!now) return new BindingError(bindingVolumeNotFound(name))
      if (!isReachableFrom(now, node)) return nodeFault(volumeNodeMismatch(name, nodeName))
      if (!now.spec?.claimRef?.uid) return new BindingError(claimRefReset(name))
      const stored = this.#caches.claims.get(claim.key)
      if (!stored) return new BindingError(provisioningClaimNotFound(claim.name))
      if (!isBound(stored)) isWaiting = true
    }
    for (const claim of [...plan.provision.map((one) => one.claim), ...plan.shared]) {
      const now = this.#caches.claims.get(claim.key)
      if (now?.metadata.uid !== claim.claim.metadata.uid || !now)
        return new BindingError(provisioningClaimNotFound(claim.name))
      if (isBound(now)) {
        const { volumeName = '' } = now.spec ?? {}
        const volume = this.#caches.volumes.get(volumeName)
        if (!volume) isWaiting = true
        else if (!isReachableFrom(volume, node)) return nodeFault(volumeNodeMismatch(volumeName, nodeName))
        continue
      }
      isWaiting = true
      if (plan.shared.includes(claim)) continue // checked by the wait of the pod it is shared with
      if (!now.metadata.annotations) return nodeFault(selectedNodeReset(claim.name))
      if (annotationOf(now, SELECTED_NODE) !== nodeName) return nodeFault(provisioningFailed(claim.name))
    }
    return isWaiting ? 'waiting' : 'bound'
  }

  #enter(wait: Wait): void {
    this.#byPod.set(wait.podKey, wait)
    for (const key of claimKeysOf(wait)) {
      getOrCreate(this.#byClaim, key, () => new Set()).add(wait)
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

const claimKeysOf = ({ plan: { bind, provision, shared }, bound }: Waiting): ObjectKey[] => [
  ...bound.map(({ key }) => key),
  ...bind.map(({ claim }) => claim.key),
  ...provision.map(({ claim }) => claim.key),
  ...shared.map(({ key }) => key),
]
