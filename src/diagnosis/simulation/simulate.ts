// Simulates the placement of pods on a snapshot: the scheduler's decisions in the order of its queue, each applied before the
// next. Nothing is written to a server.
import type { Random } from '../../base/clock.ts'
import type { SimulationResult } from './result.ts'
import { type Round, runRound } from './round.ts'
import type { Scenario } from './scenario.ts'

export interface SimulationOptions {
  readonly random: Random
  /** Called after each pod. */
  onProgress?(progress: SimulationProgress): void
  /** Called after every few pods to let other work run. A rejection ends the simulation. */
  pause(): Promise<void>
}

export interface SimulationProgress {
  readonly completedPodCount: number
  readonly totalPodCount: number
  /** Above 1 while the simulation verifies the number of nodes that the pods need. */
  readonly round: number
}

/** The search adds at most this many nodes to those of the first round. If they do not suffice, it reports the first round. */
const EXTRA_NODES_MAX = 5

/**
 * If the scenario has a group but no number of nodes, the first round adds a node for each pod that fits only on a new one.
 * The scheduler spreads pods over all existing nodes, so further rounds verify the number with nodes that exist from the
 * start, and raise it if it does not suffice.
 */
export async function simulate(scenario: Scenario, options: SimulationOptions): Promise<SimulationResult> {
  const { group, nodeCount } = scenario
  if (!group || nodeCount !== undefined)
    return toResult(await runRound(scenario, { nodeCount: nodeCount ?? 0, canGrow: false, round: 1 }, options))
  const grown = await runRound(scenario, { nodeCount: 0, canGrow: true, round: 1 }, options)
  if (grown.addedNodeCount === 0) return toResult(grown)
  for (let extra = 0; extra <= EXTRA_NODES_MAX; extra++) {
    const rules = { nodeCount: grown.addedNodeCount + extra, canGrow: false, round: extra + 2 }
    const verified = await runRound(scenario, rules, options)
    if (verified.result.rejected.length <= grown.result.rejected.length) return toResult(verified, true)
  }
  return toResult(grown, true)

  function toResult({ result, addedNodeCount }: Round, isSearched = nodeCount === undefined): SimulationResult {
    return group ? { ...result, nodeGroup: { name: group.name, nodes: addedNodeCount, isSearched } } : result
  }
}
