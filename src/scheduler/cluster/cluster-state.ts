// The nodes and the pods on them, updated with every event and never rebuilt. A pod is assumed on its selected node until
// the API server reports it there or its binding fails.

import type { Stored } from '../../api/kind.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { getOrCreate } from '../get-or-create.ts'
import { NodeInfo } from './node-info.ts'
import { isFinished, type PodInfo, podInfoOf } from './pod-info.ts'

export class ClusterState {
  /** The order is stable, because each search continues where the previous one ended. */
  readonly #nodes: NodeInfo[] = []
  readonly #nodeInfos = new Map<string, NodeInfo>()
  readonly #nodeOfPod = new Map<ObjectKey, { nodeInfo: NodeInfo; uid: string; isAssumed: boolean }>()
  readonly #podsByClaim = new Map<ObjectKey, Set<ObjectKey>>()

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
    return this.#nodeOfPod.get(podKey)?.nodeInfo
  }

  setNode(node: Readonly<Stored<Node>>): NodeInfo {
    const nodeInfo = this.#nodeInfoOf(node.metadata.name)
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
    const placement = this.#nodeOfPod.get(key)
    if (placement?.isAssumed && !nodeName && placement.uid === pod.metadata.uid) return false // still being bound
    if (!nodeName || isFinished(pod)) return this.removePod(key)
    if (placement && placement.nodeInfo.name !== nodeName) this.removePod(key)
    this.#addPod(podInfoOf(pod), nodeName, false)
    return false
  }

  /** Returns true if the pod was on a node. */
  removePod(key: ObjectKey): boolean {
    const placement = this.#nodeOfPod.get(key)
    if (!placement) return false
    this.#nodeOfPod.delete(key)
    for (const claim of placement.nodeInfo.pods.get(key)?.claims ?? []) {
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
    return this.#nodeOfPod.get(key)?.isAssumed ? this.removePod(key) : false
  }

  #addPod(pod: PodInfo, nodeName: string, isAssumed: boolean): void {
    const nodeInfo = this.#nodeInfoOf(nodeName)
    nodeInfo.addPod(pod)
    this.#nodeOfPod.set(pod.key, { nodeInfo, uid: pod.uid, isAssumed })
    for (const { key } of pod.claims) {
      getOrCreate(this.#podsByClaim, key, () => new Set<ObjectKey>()).add(pod.key)
    }
  }

  #nodeInfoOf(name: string): NodeInfo {
    return getOrCreate(this.#nodeInfos, name, () => new NodeInfo(name))
  }

  #dropIfEmpty(nodeInfo: NodeInfo): void {
    if (!nodeInfo.node && nodeInfo.pods.size === 0) this.#nodeInfos.delete(nodeInfo.name)
  }
}

const NO_PODS: ReadonlySet<ObjectKey> = new Set()
