// Holds the pods that wait for their preemption victims to leave, by nominated node. Pods of the same or a lower priority cannot
// use the space that a nominated pod needs. A nomination takes effect with the decision, before the API shows it.
import type { ObjectKey } from '../../client/index.ts'
import { getOrCreate } from '../get-or-create.ts'
import type { PodInfo } from './pod-info.ts'

export class NominatedPods {
  readonly #byNode = new Map<string, Map<ObjectKey, PodInfo>>()
  readonly #nodes = new Map<ObjectKey, string>()
  /** Nominations that changed here and that the API does not show yet. `nodeName` is empty if the nomination was cleared. */
  readonly #unwritten = new Map<ObjectKey, { readonly uid: string; readonly nodeName: string }>()

  get size(): number {
    return this.#nodes.size
  }

  /** Whether no pod is nominated and the API shows every change. */
  get isEmpty(): boolean {
    return this.#nodes.size === 0 && this.#unwritten.size === 0
  }

  /** Returns the name of the nominated node, which may no longer exist. */
  nodeOf(key: ObjectKey): string | undefined {
    return this.#nodes.get(key)
  }

  onNode(nodeName: string): readonly PodInfo[] {
    return [...(this.#byNode.get(nodeName)?.values() ?? [])]
  }

  all(): readonly PodInfo[] {
    return [...this.#byNode.values()].flatMap((pods) => [...pods.values()])
  }

  /** Nominates the node, or no node if the name is empty, until the API shows another nomination. */
  nominate(pod: PodInfo, nodeName: string): void {
    this.#unwritten.set(pod.key, { uid: pod.uid, nodeName })
    this.#set(pod, nodeName)
  }

  /** Applies a pod without a node from the API. Returns the node on which it is no longer nominated, if any. */
  setPod(pod: PodInfo): string | undefined {
    const shownNode = pod.pod.status?.nominatedNodeName ?? ''
    const unwritten = this.#unwritten.get(pod.key)
    if (unwritten && (unwritten.uid !== pod.uid || unwritten.nodeName === shownNode)) this.#unwritten.delete(pod.key)
    const previousNode = this.#nodes.get(pod.key)
    const nodeName = this.#unwritten.get(pod.key)?.nodeName ?? shownNode
    this.#set(pod, nodeName)
    return previousNode === nodeName ? undefined : previousNode
  }

  /** Removes a pod that has a node, has terminated or was deleted. Returns the node on which it was nominated. */
  removePod(key: ObjectKey): string | undefined {
    const nodeName = this.#nodes.get(key)
    this.#unwritten.delete(key)
    this.#delete(key)
    return nodeName
  }

  #set(pod: PodInfo, nodeName: string): void {
    this.#delete(pod.key)
    if (nodeName === '') return
    this.#nodes.set(pod.key, nodeName)
    getOrCreate(this.#byNode, nodeName, () => new Map<ObjectKey, PodInfo>()).set(pod.key, pod)
  }

  #delete(key: ObjectKey): void {
    const nodeName = this.#nodes.get(key)
    if (nodeName === undefined) return
    this.#nodes.delete(key)
    const pods = this.#byNode.get(nodeName)
    pods?.delete(key)
    if (pods?.size === 0) this.#byNode.delete(nodeName)
  }
}
