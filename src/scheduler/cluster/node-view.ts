// One node as the scheduler believes it to be: the node object, the pods on it or on their way to it, and their sums.
// cluster-state.ts keeps it; plugins read it.
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { PodFacts } from '../pod-facts.ts'
import { type Amounts, addAmounts, allocatableOf } from './amounts.ts'

/** What a pod that asks for nothing is thought to use, when nodes are compared: or all would go to one node. */
const CPU_IF_UNSAID = 100
const MEMORY_IF_UNSAID = 200 * 1024 * 1024

export class NodeView {
  readonly name: string
  /** Undefined while only pods speak of it. */
  node: Readonly<Node> | undefined
  labels: Readonly<Record<string, string>> = {}
  taints: readonly Taint[] = []
  allocatable: Amounts | undefined
  readonly pods = new Map<ObjectKey, PodFacts>()
  requested = new Map<string, number>()
  /** For comparing nodes only; see above. */
  cpuLikely = 0
  memoryLikely = 0
  /** Grows with every change of the pods here: what was worked out from them is then stale. */
  podsVersion = 0

  constructor(name: string) {
    this.name = name
  }

  setNode(node: Readonly<Node> | undefined): void {
    this.node = node
    this.labels = node?.metadata.labels ?? {}
    this.taints = node?.spec?.taints ?? []
    this.allocatable = node && allocatableOf(node)
  }

  addPod(facts: PodFacts): void {
    if (this.pods.has(facts.key)) this.removePod(facts.key)
    this.pods.set(facts.key, facts)
    this.#count(facts)
    this.podsVersion++
  }

  removePod(key: ObjectKey): void {
    if (!this.pods.delete(key)) return
    // Summed anew: subtracting would leave residues behind amounts too large for exact arithmetic.
    this.requested = new Map()
    this.cpuLikely = 0
    this.memoryLikely = 0
    for (const facts of this.pods.values()) this.#count(facts)
    this.podsVersion++
  }

  #count({ requests }: PodFacts): void {
    addAmounts(this.requested, requests)
    this.cpuLikely += likelyCpu(requests)
    this.memoryLikely += likelyMemory(requests)
  }
}

export const likelyCpu = (requests: Amounts): number => requests.get('cpu') || CPU_IF_UNSAID
export const likelyMemory = (requests: Amounts): number => requests.get('memory') || MEMORY_IF_UNSAID
