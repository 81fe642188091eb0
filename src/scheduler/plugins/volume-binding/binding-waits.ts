// Waits in preBind until all claims of a pod are bound. A wait is checked when one of its objects changes, without polling.

import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { Clock } from '../../../base/clock.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { claimKeyOf, type Volume } from '../../../volumes/matching.ts'
import { LAST_FAILURE, SELECTED_NODE } from '../../../volumes/names.ts'
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
  nodeLost,
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
  /** Whether the pod may succeed on another node. */
  readonly isNodeSpecific: boolean
  constructor(message: string, { isNodeSpecific = false } = {}) {
    super(message)
    this.isNodeSpecific = isNodeSpecific
  }
}

const nodeError = (message: string): BindingError => new BindingError(message, { isNodeSpecific: true })

export interface WaitOptions {
  readonly podKey: ObjectKey
  readonly nodeName: string
  readonly plan: NodePlan
  /** The claims that were already bound when the node was selected. They must still be bound at the end of the wait. */
  readonly boundClaims: readonly BoundClaim[]
  readonly timeoutMs: number
}

interface Wait extends WaitOptions {
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

  /** Resolves when every claim is bound. Rejects with a BindingError. */
  waitUntilBound(options: WaitOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        cancelTimer()
        this.#remove(wait)
        settle()
      }
      const fail = (error: Error) => finish(() => reject(error))
      const check = () => {
        const state = this.#evaluate(options)
        if (state === 'bound') finish(resolve)
        else if (state !== 'waiting') fail(state)
      }
      const wait: Wait = { ...options, check, fail }
      const cancelTimer = this.#clock.after(options.timeoutMs, () => fail(new BindingError(BIND_TIMEOUT)))
      this.#add(wait)
      if (this.#isStopped) fail(new BindingError(SCHEDULER_STOPPING))
      else check()
    })
  }

  /** Fails all current and later waits. */
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

  /** Checks the waits for a node that was deleted or lost. */
  nodeRemoved(nodeName: string): void {
    for (const wait of [...this.#byPod.values()]) if (wait.nodeName === nodeName) wait.check()
  }

  #evaluate({ plan, boundClaims, nodeName }: WaitOptions): 'bound' | 'waiting' | BindingError {
    const node = this.#cluster.node(nodeName)
    if (!node) return nodeError(nodeNotFound(nodeName))
    if (isConfirmedOff(node.node)) return nodeError(nodeLost(nodeName))
    for (const { key, name, claim } of boundClaims) {
      const currentClaim = this.#caches.claims.get(key)
      if (!currentClaim || currentClaim.metadata.uid !== claim.metadata.uid)
        return new BindingError(claimNotFound(name).message)
      // PVC protection may not apply yet, because this pod is not on a node.
      if (currentClaim.metadata.deletionTimestamp) return new BindingError(claimBeingDeleted(name).message)
    }
    let isWaiting = false
    for (const { claim, volume } of plan.bindings) {
      const { name = '' } = volume.metadata
      const currentVolume = this.#caches.volumes.get(name)
      if (!currentVolume) return new BindingError(bindingVolumeNotFound(name))
      if (!isReachableFrom(currentVolume, node)) return nodeError(volumeNodeMismatch(name, nodeName))
      if (!currentVolume.spec?.claimRef?.uid) return new BindingError(claimRefReset(name))
      const currentClaim = this.#caches.claims.get(claim.key)
      if (!currentClaim) return new BindingError(provisioningClaimNotFound(claim.name))
      if (!isBound(currentClaim)) isWaiting = true
    }
    const claimsToProvision = plan.provisions.map(({ claim }) => claim)
    for (const claim of [...claimsToProvision, ...plan.sharedClaims]) {
      const currentClaim = this.#caches.claims.get(claim.key)
      if (currentClaim?.metadata.uid !== claim.claim.metadata.uid || !currentClaim)
        return new BindingError(provisioningClaimNotFound(claim.name))
      if (isBound(currentClaim)) {
        const { volumeName = '' } = currentClaim.spec ?? {}
        const volume = this.#caches.volumes.get(volumeName)
        if (!volume) isWaiting = true
        else if (!isReachableFrom(volume, node)) return nodeError(volumeNodeMismatch(volumeName, nodeName))
        continue
      }
      isWaiting = true
      if (plan.sharedClaims.includes(claim)) continue // the wait of the other pod checks the selected node
      if (!currentClaim.metadata.annotations) return nodeError(selectedNodeReset(claim.name))
      if (annotationOf(currentClaim, SELECTED_NODE) !== nodeName)
        return nodeError(provisioningFailed(claim.name, annotationOf(currentClaim, LAST_FAILURE)))
    }
    return isWaiting ? 'waiting' : 'bound'
  }

  #add(wait: Wait): void {
    this.#byPod.set(wait.podKey, wait)
    for (const key of claimKeysOf(wait)) {
      getOrCreate(this.#byClaim, key, () => new Set()).add(wait)
    }
  }

  #remove(wait: Wait): void {
    if (this.#byPod.get(wait.podKey) === wait) this.#byPod.delete(wait.podKey)
    for (const key of claimKeysOf(wait)) {
      const waits = this.#byClaim.get(key)
      waits?.delete(wait)
      if (waits?.size === 0) this.#byClaim.delete(key)
    }
  }
}

const claimKeysOf = ({ plan: { bindings, provisions, sharedClaims }, boundClaims }: WaitOptions): ObjectKey[] => [
  ...boundClaims.map(({ key }) => key),
  ...bindings.map(({ claim }) => claim.key),
  ...provisions.map(({ claim }) => claim.key),
  ...sharedClaims.map(({ key }) => key),
]
