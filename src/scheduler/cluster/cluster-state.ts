// Holds the nodes and the pods on them. Every event updates this state; nothing rebuilds it. A pod is assumed on its selected
// node until the API server reports it there or its binding fails.

import type { Stored } from '../../api/kind.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { getOrCreate } from '../get-or-create.ts'
import { NodeInfo } from './node-info.ts'
import { NominatedPods } from './nominated-pods.ts'
import { type PodInfo, podInfoOf } from './pod-info.ts'

export class ClusterState {
  /** The order is stable, because each search continues where the previous one ended. */
  readonly #nodes: NodeInfo[] = []
  readonly #nodeInfos = new Map<string, NodeInfo>()
  readonly #placements = new Map<ObjectKey, { nodeInfo: NodeInfo; uid: string; isAssumed: boolean }>()
  readonly #podsByClaim = new Map<ObjectKey, Set<ObjectKey>>()
  /** The number of pods on nodes, by priority. */
  readonly #podCounts = new Map<number, number>()
  readonly nominatedPods = new NominatedPods()

  get nodes(): readonly NodeInfo[] {
    return this.#nodes
  }

  /** Returns undefined if the node does not exist. */
  node(name: string): NodeInfo | undefined {
    const nodeInfo = this.#nodeInfos.get(name)
    return nodeInfo?.node ? nodeInfo : undefined
  }

  /** Returns the pods that use the claim and are on a node, assumed pods included. */
  podsUsing(claimKey: ObjectKey): ReadonlySet<ObjectKey> {
    return this.#podsByClaim.get(claimKey) ?? NO_PODS
  }

  nodeOf(podKey: ObjectKey): NodeInfo | undefined {
    return this.#placements.get(podKey)?.nodeInfo
  }

  /** Whether any pod on a node has a lower priority. */
  hasPodsBelow(priority: number): boolean {
    for (const podPriority of this.#podCounts.keys()) if (podPriority < priority) return true
    return false
  }

  /**
   * Returns the nominated pods that have precedence over the pod, because their priority is at least as high, on the node or
   * on all nodes. A nominated pod that is assumed on a node already counts there.
   */
  nominatedPodsBefore({ key, priority }: PodInfo, nodeName?: string): PodInfo[] {
    const pods = nodeName === undefined ? this.nominatedPods.all() : this.nominatedPods.onNode(nodeName)
    return pods.filter((pod) => pod.priority >= priority && pod.key !== key && !this.#placements.has(pod.key))
  }

  setNode(node: Readonly<Stored<Node>>): NodeInfo {
    const nodeInfo = this.#getOrCreateNodeInfo(node.metadata.name)
    if (!nodeInfo.node) this.#nodes.push(nodeInfo)
    nodeInfo.setNode(node)
    return nodeInfo
  }

  removeNode(name: string): void {
    const nodeInfo = this.#nodeInfos.get(name)
    if (!nodeInfo?.node) return
    nodeInfo.setNode(undefined)
    this.#nodes.splice(this.#nodes.indexOf(nodeInfo), 1)
    this.#dropIfEmpty(nodeInfo)
  }

  /** Applies a pod from the API. Returns true if the pod left its node, which may make other pods schedulable. */
  setPod(pod: Readonly<Pod>): boolean {
    const key = keyOfObject(pod)
    const nodeName = pod.spec?.nodeName
    const placement = this.#placements.get(key)
    if (placement?.isAssumed && !nodeName && placement.uid === pod.metadata.uid) return false // still being bound
    if (!nodeName || hasTerminated(pod)) return this.removePod(key)
    if (placement && placement.nodeInfo.name !== nodeName) this.removePod(key)
    this.#addPod(podInfoOf(pod), nodeName, false)
    return false
  }

  /** Returns true if the pod was on a node. */
  removePod(key: ObjectKey): boolean {
    const placement = this.#placements.get(key)
    if (!placement) return false
    this.#placements.delete(key)
    const pod = placement.nodeInfo.pods.get(key)
    if (pod) this.#countPriority(pod.priority, -1)
    for (const claim of pod?.claims ?? []) {
      const podKeys = this.#podsByClaim.get(claim.key)
      podKeys?.delete(key)
      if (podKeys?.size === 0) this.#podsByClaim.delete(claim.key)
    }
    placement.nodeInfo.removePod(key)
    this.#dropIfEmpty(placement.nodeInfo)
    return true
  }

  assume(pod: PodInfo, nodeName: string): void {
    this.#addPod(pod, nodeName, true)
  }

  /** Removes an assumed pod after its binding failed. Returns false for a pod that the API server reports on a node. */
  forget(key: ObjectKey): boolean {
    return this.#placements.get(key)?.isAssumed ? this.removePod(key) : false
  }

  #addPod(pod: PodInfo, nodeName: string, isAssumed: boolean): void {
    const nodeInfo = this.#getOrCreateNodeInfo(nodeName)
    const previousPod = nodeInfo.pods.get(pod.key)
    if (previousPod) this.#countPriority(previousPod.priority, -1)
    this.#countPriority(pod.priority, 1)
    nodeInfo.addPod(pod)
    this.#placements.set(pod.key, { nodeInfo, uid: pod.uid, isAssumed })
    for (const { key } of pod.claims) {
      getOrCreate(this.#podsByClaim, key, () => new Set<ObjectKey>()).add(pod.key)
    }
  }

  #countPriority(priority: number, change: number): void {
    const count = (this.#podCounts.get(priority) ?? 0) + change
    if (count === 0) this.#podCounts.delete(priority)
    else this.#podCounts.set(priority, count)
  }

  #getOrCreateNodeInfo(name: string): NodeInfo {
    return getOrCreate(this.#nodeInfos, name, () => new NodeInfo(name))
  }

  #dropIfEmpty(nodeInfo: NodeInfo): void {
    if (!nodeInfo.node && nodeInfo.pods.size === 0) this.#nodeInfos.delete(nodeInfo.name)
  }
}

const NO_PODS: ReadonlySet<ObjectKey> = new Set()
