// Finds the node for a pod: asks every opinion about node after node until enough are found that will do, then takes the
// one they like best. Pure in what it is given; where it starts and how it breaks ties is told to it.
import type { Random } from '../base/clock.ts'
import type { NodeView } from './cluster/node-view.ts'
import type { Judge, Plugin } from './plugin.ts'
import type { PodFacts } from './pod-facts.ts'

export interface Opinion {
  readonly plugin: Plugin
  readonly judge: Judge
}

export type Search =
  | { readonly is: 'found'; readonly node: NodeView; readonly looked: number }
  | { readonly is: 'none'; readonly refusals: Map<NodeView, readonly string[]>; readonly refusedBy: Set<string> }

/** What the plugins have to say about this pod, or why no node will do whatever they say. */
export function opinionsOn(
  pod: PodFacts,
  plugins: readonly Plugin[],
  prepare = (plugin: Plugin) => plugin.prepare(pod),
): Opinion[] | { readonly because: string; readonly plugin: string } {
  const opinions: Opinion[] = []
  for (const plugin of plugins) {
    const judgement = prepare(plugin)
    if (judgement.is === 'hopeless') return { because: judgement.because, plugin: plugin.name }
    if (judgement.is === 'judge') opinions.push({ plugin, judge: judgement })
  }
  return opinions
}

export interface SearchOptions {
  readonly nodes: readonly NodeView[]
  /** Where in the list to begin: each search goes on where the last one ended, so that every node gets its turn. */
  readonly startAt: number
  readonly random: Random
}

export function findNode(opinions: readonly Opinion[], { nodes, startAt, random }: SearchOptions): Search {
  const enough = nodesToFind(nodes.length)
  const asked = opinions.filter(({ judge }) => judge.refuses)
  const avoid = opinions.filter(({ judge }) => judge.avoids)
  const good: NodeView[] = []
  const fallback: NodeView[] = []
  const refusals = new Map<NodeView, readonly string[]>()
  const refusedBy = new Set<string>()
  let looked = 0
  for (; looked < nodes.length && good.length < enough; looked++) {
    const node = nodes[(startAt + looked) % nodes.length]!
    const refused = firstRefusal(asked, node)
    if (refused) {
      refusals.set(node, refused.reasons)
      refusedBy.add(refused.by)
    } else if (avoid.some(({ judge }) => judge.avoids?.(node))) fallback.push(node)
    else good.push(node)
  }
  const candidates = good.length > 0 ? good : fallback
  if (candidates.length === 0) return { is: 'none', refusals, refusedBy }
  return { is: 'found', node: best(candidates, opinions, random), looked }
}

/** Who minds this node, and why; undefined when nobody does. */
export function firstRefusal(asked: readonly Opinion[], node: NodeView) {
  for (const { plugin, judge } of asked) {
    const reasons = judge.refuses?.(node)
    if (reasons) return { reasons, by: plugin.name }
  }
  return undefined
}

const ALL_BELOW = 100
const PERCENT_MAX = 50
const PERCENT_MIN = 5
const NODES_PER_PERCENT = 125

/**
 * In a large cluster a part of it is choice enough: half of 100 nodes, a tenth of 5,000, never fewer than 100. Fewer
 * candidates would be found faster, and would be worse.
 */
export function nodesToFind(count: number): number {
  if (count <= ALL_BELOW) return count
  const percent = Math.max(PERCENT_MIN, PERCENT_MAX - Math.floor(count / NODES_PER_PERCENT))
  return Math.max(ALL_BELOW, Math.floor((count * percent) / 100))
}

function best(nodes: readonly NodeView[], opinions: readonly Opinion[], random: Random): NodeView {
  if (nodes.length === 1) return nodes[0]!
  const totals = new Float64Array(nodes.length)
  for (const { plugin, judge } of opinions) {
    const scores = judge.scores?.(nodes)
    if (scores) for (let at = 0; at < nodes.length; at++) totals[at]! += scores[at]! * (plugin.weight ?? 1)
  }
  let chosen = 0
  let ties = 1
  for (let at = 1; at < nodes.length; at++) {
    if (totals[at]! > totals[chosen]!) {
      chosen = at
      ties = 1
    } else if (totals[at] === totals[chosen] && random() * ++ties < 1) chosen = at // each of the best is as likely
  }
  return nodes[chosen]!
}
