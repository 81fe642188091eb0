// The nodes and the pods on them, updated with every event and never rebuilt. A pod is assumed on the node chosen for it
// until the API shows it there or its binding has failed.

import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { getOrCreate } from '../get-or-create.ts'
import { NodeInfo } from './node-info.ts'
import { isFinished, type PodInfo, podInfo } from './pod-info.ts'

export class ClusterState {
  /** In a stable order: each search continues where the last one ended. */
  readonly #list: NodeInfo[] = []
  readonly #views = new Map<string, NodeInfo>()
  readonly #nodeOfPod = new Map<ObjectKey, { view: NodeInfo; uid: string; isAssumed: boolean }>()
  readonly #podsByClaim = new Map<ObjectKey, Set<ObjectKey>>()

  get nodes(): readonly NodeInfo[] {
    return this.#list
  }

  /** Undefined if the node does not exist. */
  node(name: string): NodeInfo | undefined {
    const view = this.#views.get(name)
    return view?.node ? view : undefined
  }

  /** Pods on a node, assumed ones included, that use the claim. */
  podsUsing(claimKey: ObjectKey): ReadonlySet<ObjectKey> {
    return this.#podsByClaim.get(claimKey) ?? NO_PODS
  }

  nodeOf(podKey: ObjectKey): NodeInfo | undefined {
    return this.#nodeOfPod.get(podKey)?.view
  }

  setNode(node: Readonly<Node>): NodeInfo {
    const view = this.#viewOf(node.metadata.name ?? '')
    if (!view.node) this.#list.push(view)
    view.setNode(node)
    return view
  }

  removeNode(name: string): void {
    const view = this.#views.get(name)
    if (!view?.node) return
    view.setNode(undefined)
    this.#list.splice(this.#list.indexOf(view), 1)
    this.#dropIfEmpty(view)
  }

  /** Applies a pod from the API. True if it has left its node, which may make other pods schedulable. */
  setPod(pod: Readonly<Pod>): boolean {
    const key = keyOfObject(pod)
    const nodeName = pod.spec?.nodeName
    const known = this.#nodeOfPod.get(key)
    if (known?.isAssumed && !nodeName && known.uid === pod.metadata.uid) return false // still being bound
    if (!nodeName || isFinished(pod)) return this.removePod(key)
    if (known && known.view.name !== nodeName) this.removePod(key)
    this.#place(podInfo(pod), nodeName, false)
    return false
  }

  /** True if it was on a node. */
  removePod(key: ObjectKey): boolean {
    const known = this.#nodeOfPod.get(key)
    if (!known) return false
    this.#nodeOfPod.delete(key)
    for (const claim of known.view.pods.get(key)?.claims ?? []) {
      const users = this.#podsByClaim.get(claim.key)
      users?.delete(key)
      if (users?.size === 0) this.#podsByClaim.delete(claim.key)
    }
    known.view.removePod(key)
    this.#dropIfEmpty(known.view)
    return true
  }

  assume(facts: PodInfo, nodeName: string): void {
    this.#place(facts, nodeName, true)
  }

  /** Binding failed. True if the pod was removed; one that the API shows on a node stays there. */
  forget(key: ObjectKey): boolean {
    return this.#nodeOfPod.get(key)?.isAssumed ? this.removePod(key) : false
  }

  #place(facts: PodInfo, nodeName: string, isAssumed: boolean): void {
    const view = this.#viewOf(nodeName)
    view.addPod(facts)
    this.#nodeOfPod.set(facts.key, { view, uid: facts.uid, isAssumed })
    for (const { key } of facts.claims) {
      getOrCreate(this.#podsByClaim, key, () => new Set<ObjectKey>()).add(facts.key)
    }
  }

  #viewOf(name: string): NodeInfo {
    return getOrCreate(this.#views, name, () => new NodeInfo(name))
  }

  #dropIfEmpty(view: NodeInfo): void {
    if (!view.node && view.pods.size === 0) this.#views.delete(view.name)
  }
}

const NO_PODS: ReadonlySet<ObjectKey> = new Set()
