// A node with the pods on it, assumed pods included, and the sums of their requests. cluster-state.ts updates it;
// plugins read it.
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { PodInfo } from './pod-info.ts'
import { addAmounts, allocatableOf, hasSameAmounts, type ResourceAmounts } from './resource-amounts.ts'

/** The amounts that scoring assumes for a pod that requests no cpu or no memory, so that such pods spread over the nodes. */
const CPU_DEFAULT_MILLIS = 100
const MEMORY_DEFAULT_BYTES = 200 * 1024 * 1024

export class NodeInfo {
  readonly name: string
  /** Undefined if a pod is bound to a node that does not exist. */
  node: Readonly<Node> | undefined
  labels: Readonly<Record<string, string>> = {}
  taints: readonly Taint[] = []
  allocatable: ResourceAmounts | undefined
  readonly pods = new Map<ObjectKey, PodInfo>()
  requested = new Map<string, number>()
  /** Sums of requests with the defaults above, for scoring only. */
  nonZeroCpu = 0
  nonZeroMemory = 0
  /** Incremented with every change to the pods. Plugins use it to invalidate data that they derive from the pods. */
  podsVersion = 0

  /**
   * Whether to ignore attached volumes that no pod on the node uses, because they are being detached. Set only on copies, to
   * evaluate a pod as if other pods had left the node.
   */
  readonly ignoresUnusedAttachments: boolean

  constructor(name: string, { ignoresUnusedAttachments = false } = {}) {
    this.name = name
    this.ignoresUnusedAttachments = ignoresUnusedAttachments
  }

  /** Returns a copy of the node with these pods, to evaluate a pod as if others had left the node or were added to it. */
  copyWith(pods: Iterable<PodInfo>, { ignoresUnusedAttachments = this.ignoresUnusedAttachments } = {}): NodeInfo {
    const copy = new NodeInfo(this.name, { ignoresUnusedAttachments })
    copy.node = this.node
    copy.labels = this.labels
    copy.taints = this.taints
    copy.allocatable = this.allocatable
    for (const pod of pods) copy.addPod(pod)
    return copy
  }

  setNode(node: Readonly<Node> | undefined): void {
    this.node = node
    this.labels = node?.metadata.labels ?? {}
    this.taints = node?.spec?.taints ?? []
    this.allocatable = node && allocatableOf(node)
  }

  addPod(pod: PodInfo): void {
    const previousPod = this.pods.get(pod.key)
    if (previousPod && hasSameAmounts(previousPod.requests, pod.requests)) {
      this.pods.set(pod.key, pod) // the sums remain the same
    } else {
      if (previousPod) this.removePod(pod.key)
      this.pods.set(pod.key, pod)
      this.#addRequests(pod)
    }
    this.podsVersion++
  }

  removePod(key: ObjectKey): void {
    if (!this.pods.delete(key)) return
    // Sum again instead of subtracting, because amounts above 2^53 are not exact.
    this.requested = new Map()
    this.nonZeroCpu = 0
    this.nonZeroMemory = 0
    for (const pod of this.pods.values()) this.#addRequests(pod)
    this.podsVersion++
  }

  #addRequests({ requests }: PodInfo): void {
    addAmounts(this.requested, requests)
    this.nonZeroCpu += nonZeroCpu(requests)
    this.nonZeroMemory += nonZeroMemory(requests)
  }
}

export const nonZeroCpu = (requests: ResourceAmounts): number => requests.get('cpu') || CPU_DEFAULT_MILLIS
export const nonZeroMemory = (requests: ResourceAmounts): number => requests.get('memory') || MEMORY_DEFAULT_BYTES
