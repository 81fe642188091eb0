import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type PodInfo, podInfoOf } from '../../cluster/pod-info.ts'
import { runFilters, runPreFilters } from '../../find-node.ts'
import type { Plugin } from '../../framework/plugin.ts'
import { nodeAffinity } from '../node-affinity/node-affinity.ts'
import { nodePorts } from '../node-ports/node-ports.ts'
import { nodeResources } from '../node-resources/node-resources.ts'
import { aNode, aPod } from '../plugins.fixture.ts'
import { selectVictims } from './select-victims.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const PLUGINS: readonly Plugin[] = [nodeAffinity, nodePorts, nodeResources] as Plugin[]

interface PodShape {
  readonly priority: number
  readonly cpu: number
  readonly port?: number | undefined
  /** Minutes since the start. */
  readonly age?: number
}

function podOf({ priority, cpu, port, age = 0 }: PodShape, name: string): PodInfo {
  const ports = port === undefined ? [] : [{ containerPort: 80, hostPort: port }]
  const containers = [{ name: 'c', resources: { requests: { cpu: `${cpu}` } }, ports }]
  const startTime = new Date(NOW_MS - age * 60_000).toISOString()
  return podInfoOf({ ...aPod({ containers, priority }, name), status: { startTime } })
}

function nodeWith(cpu: number, pods: readonly PodInfo[]): NodeInfo {
  const node = aNode({ status: { allocatable: { cpu: `${cpu}`, pods: '10' } } })
  for (const pod of pods) node.addPod(pod)
  return node
}

function search(node: NodeInfo, pod: PodInfo, nominatedPods: readonly PodInfo[] = []) {
  const outcome = runPreFilters(pod, PLUGINS)
  if (outcome.is === 'rejected') throw new Error('the pod is rejected for all nodes')
  return selectVictims(node, { pod, active: outcome.active, nominatedPods, nowMs: NOW_MS })
}

/** Returns the names of the victims, or the reasons for which the node is rejected. */
function select(node: NodeInfo, pod: PodInfo, nominatedPods: readonly PodInfo[] = []): string[] {
  const selection = search(node, pod, nominatedPods)
  return selection.is === 'fits'
    ? selection.victims.map(({ key }) => key.slice('default/'.length))
    : selection.status.reasons.map(({ message }) => message)
}

function fits(pod: PodInfo, node: NodeInfo): boolean {
  const outcome = runPreFilters(pod, PLUGINS)
  return outcome.is === 'passed' && !runFilters(outcome.active, node)
}

describe('selectVictims', () => {
  const preemptor = (fields: Partial<PodShape> = {}) => podOf({ priority: 10, cpu: 2, ...fields }, 'new')

  it('SYS-27 selects only pods of lower priority, and as few as the order of importance allows', () => {
    const pods = [
      podOf({ priority: 5, cpu: 2, age: 9 }, 'five'),
      podOf({ priority: 1, cpu: 2, age: 9 }, 'one'),
      podOf({ priority: 10, cpu: 2 }, 'equal'),
    ]
    expect(select(nodeWith(6, pods), preemptor())).toEqual(['one'])
    expect(select(nodeWith(6, pods), preemptor({ cpu: 4 }))).toEqual(['five', 'one'])
  })

  it('SYS-27 keeps the pod that has run longer among pods of equal priority', () => {
    const pods = [podOf({ priority: 1, cpu: 2, age: 5 }, 'younger'), podOf({ priority: 1, cpu: 2, age: 50 }, 'older')]
    expect(select(nodeWith(4, pods), preemptor())).toEqual(['younger'])
  })

  it('SYS-27 frees the host ports of victims', () => {
    const pods = [podOf({ priority: 1, cpu: 0, port: 80 }, 'web'), podOf({ priority: 1, cpu: 0, port: 81 }, 'other')]
    expect(select(nodeWith(4, pods), preemptor({ port: 80 }))).toEqual(['web'])
  })

  it('SYS-27 rejects a node without pods of lower priority, and one on which their removal is not enough', () => {
    const equal = podOf({ priority: 10, cpu: 3 }, 'equal')
    expect(select(nodeWith(4, [equal]), preemptor())).toEqual(['No preemption victims found for incoming pod'])
    const pods = [equal, podOf({ priority: 1, cpu: 1 }, 'low')]
    expect(select(nodeWith(4, pods), preemptor())).toEqual(['Insufficient cpu'])
  })

  it('SYS-27 leaves room for nominated pods', () => {
    const pods = [podOf({ priority: 1, cpu: 2 }, 'a'), podOf({ priority: 1, cpu: 2, age: 1 }, 'b')]
    const nominatedPod = podOf({ priority: 10, cpu: 2 }, 'nominated')
    expect(select(nodeWith(4, pods), preemptor(), [nominatedPod])).toEqual(['b', 'a'])
    expect(select(nodeWith(4, pods), preemptor({ cpu: 4 }), [nominatedPod])).toEqual(['Insufficient cpu'])
  })

  const podShape = fc.record({
    priority: fc.integer({ min: -2, max: 6 }),
    cpu: fc.integer({ min: 0, max: 4 }),
    port: fc.option(fc.integer({ min: 80, max: 82 }), { nil: undefined }),
    age: fc.integer({ min: 0, max: 3 }),
  })

  it('SYS-27 agrees with an exhaustive search over the pods of small nodes', () => {
    fc.assert(
      fc.property(
        fc.array(podShape, { maxLength: 6 }),
        podShape,
        fc.integer({ min: 1, max: 8 }),
        (shapes, shape, cpu) => {
          const pods = shapes.map((podShape, index) => podOf(podShape, `p${index}`))
          const pod = podOf({ ...shape, priority: 3 }, 'new')
          const node = nodeWith(cpu, pods)
          if (fits(pod, node)) return
          const selection = search(node, pod)
          const lowerPods = pods.filter(({ priority }) => priority < 3)
          const feasibleSets = subsets(lowerPods).filter((victims) =>
            fits(
              pod,
              nodeWith(
                cpu,
                pods.filter((other) => !victims.includes(other)),
              ),
            ),
          )
          expect(selection.is === 'fits').toBe(feasibleSets.length > 0)
          if (selection.is !== 'fits') return
          const victims = new Set(selection.victims)
          // The victims suffice, none of them is superfluous, and the remaining pods are the most important ones possible.
          expect(
            feasibleSets.some((set) => set.length === victims.size && set.every((victim) => victims.has(victim))),
          ).toBe(true)
          expect(
            feasibleSets.some((set) => set.length < victims.size && set.every((victim) => victims.has(victim))),
          ).toBe(false)
          expect(selection.victims.map(({ key }) => key).sort()).toEqual(
            bestSet(feasibleSets, lowerPods)
              .map(({ key }) => key)
              .sort(),
          )
          expect([...node.pods.keys()]).toEqual(pods.map(({ key }) => key)) // the node is unchanged
        },
      ),
      { seed: 27, numRuns: 500 },
    )
  })
})

function subsets(pods: readonly PodInfo[]): PodInfo[][] {
  const sets: PodInfo[][] = [[]]
  for (const pod of pods) sets.push(...sets.map((set) => [...set, pod]))
  return sets
}

/** Returns the set that retains the most important pod if any set does, then the next one, and so on. */
function bestSet(sets: readonly PodInfo[][], pods: readonly PodInfo[]): readonly PodInfo[] {
  const start = ({ pod }: PodInfo) => Date.parse(pod.status?.startTime ?? '')
  const byImportance = pods
    .map((pod, index) => ({ pod, index }))
    .sort((a, b) => b.pod.priority - a.pod.priority || start(a.pod) - start(b.pod) || a.index - b.index)
  let remaining = sets
  for (const { pod } of byImportance) {
    const retaining = remaining.filter((set) => !set.includes(pod))
    if (retaining.length > 0) remaining = retaining
  }
  return remaining[0]!
}
