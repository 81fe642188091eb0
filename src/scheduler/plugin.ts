// What an opinion about pods and nodes looks like. Each lives in a folder of plugins/; registry.ts lists them.
// A plugin looks at the pod once (`prepare`) and hands back what it will say about each node, as cheap as can be:
// it is asked thousands of times per pod.
import type { NodeView } from './cluster/node-view.ts'
import type { PodFacts } from './pod-facts.ts'

export interface Plugin {
  readonly name: string
  /** How much its scores count against those of others. */
  readonly weight?: number
  /** Judges by the node alone, and so once more when a pod has waited there for its volumes. */
  readonly isAskedAgain?: true
  prepare(pod: PodFacts): Judgement
}

export type Judgement =
  /** It has nothing to say about this pod. */
  | { readonly is: 'indifferent' }
  /** No node will do until something else changes; the reason is said once, not per node. */
  | { readonly is: 'hopeless'; readonly because: string }
  | Judge

export interface Judge {
  readonly is: 'judge'
  /** Why this node will not do, in the words that clients know; undefined when it will. */
  refuses?(node: NodeView): readonly string[] | undefined
  /** A node to take only when there is no other. */
  avoids?(node: NodeView): boolean
  /** From 0 to 100 for each, higher is better; undefined when all are alike. */
  scores?(nodes: readonly NodeView[]): readonly number[] | undefined
  /** Sets aside what the pod is to get on this node; nobody else is given it until it is released. */
  reserve?(node: NodeView): Reserved
  /** What to add to the message when no node would do. */
  explains?(refusals: Refusals): string | undefined
}

export interface Reserved {
  /** Writes down what was set aside and waits until it has come true. */
  commit(): Promise<void>
  /** The pod is bound or has failed: what was only set aside is free again. */
  release(): void
}

/** Which nodes refused, and why. */
export type Refusals = ReadonlyMap<NodeView, readonly string[]>

export const INDIFFERENT: Judgement = Object.freeze({ is: 'indifferent' })
export const SCORE_MAX = 100
