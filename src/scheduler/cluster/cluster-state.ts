// What the scheduler believes about nodes and the pods on them, kept up to date change by change and never rebuilt.
// A pod it has just placed counts as being there ("assumed") until the server shows it or the placing has failed.

import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { getOrMake } from '../get-or-make.ts'
import { isFinished, type PodFacts, podFacts } from '../pod-facts.ts'
import { NodeView } from './node-view.ts'

export class ClusterState {
  /** In an order that changes only when nodes come and go: the search for a node goes round it. */
  readonly #list: NodeView[] = []
  readonly #views = new Map<string, NodeView>()
  readonly #nodeOfPod = new Map<ObjectKey, { view: NodeView; uid: string; isAssumed: boolean }>()
  readonly #podsByClaim = new Map<ObjectKey, Set<ObjectKey>>()

  get nodes(): readonly NodeView[] {
    return this.#list
  }

  /** Undefined for a node that is not, or no longer, there. */
  node(name: string): NodeView | undefined {
    const view = this.#views.get(name)
    return view?.node ? view : undefined
  }

  /** Pods on nodes, and on their way to one, that use the claim. */
  podsUsing(claimKey: ObjectKey): ReadonlySet<ObjectKey> {
    return this.#podsByClaim.get(claimKey) ?? NO_PODS
  }

  nodeOf(podKey: ObjectKey): NodeView | undefined {
    return this.#nodeOfPod.get(podKey)?.view
  }

  setNode(node: Readonly<Node>): NodeView {
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

  /** A pod as the server shows it. True when it has left its node, which may help others. */
  setPod(pod: Readonly<Pod>): boolean {
    const key = keyOfObject(pod)
    const nodeName = pod.spec?.nodeName
    const known = this.#nodeOfPod.get(key)
    if (known?.isAssumed && !nodeName && known.uid === pod.metadata.uid) return false // its binding is on the way
    if (!nodeName || isFinished(pod)) return this.removePod(key)
    if (known && known.view.name !== nodeName) this.removePod(key)
    this.#place(podFacts(pod), nodeName, false)
    return false
  }

  /** True when it was on a node. */
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

  assume(facts: PodFacts, nodeName: string): void {
    this.#place(facts, nodeName, true)
  }

  /** The placing failed. What the server has shown meanwhile stands. */
  forget(key: ObjectKey): boolean {
    return this.#nodeOfPod.get(key)?.isAssumed ? this.removePod(key) : false
  }

  #place(facts: PodFacts, nodeName: string, isAssumed: boolean): void {
    const view = this.#viewOf(nodeName)
    view.addPod(facts)
    this.#nodeOfPod.set(facts.key, { view, uid: facts.uid, isAssumed })
    for (const { key } of facts.claims) {
      getOrMake(this.#podsByClaim, key, () => new Set<ObjectKey>()).add(facts.key)
    }
  }

  #viewOf(name: string): NodeView {
    return getOrMake(this.#views, name, () => new NodeView(name))
  }

  #dropIfEmpty(view: NodeView): void {
    if (!view.node && view.pods.size === 0) this.#views.delete(view.name)
  }
}

const NO_PODS: ReadonlySet<ObjectKey> = new Set()
