import { describe, expect, it } from 'vitest'
import { NodeInfo } from './cluster/node-info.ts'
import { findNode, numFeasibleNodesToFind } from './find-node.ts'
import type { ActivePlugin, Plugin } from './framework/plugin.ts'
import { SKIP, unschedulable } from './framework/status.ts'

const createNodes = (count: number) => Array.from({ length: count }, (_, index) => new NodeInfo(`n${index}`))
const activate = (plugin: Partial<Plugin<undefined>>): ActivePlugin => ({
  plugin: { name: 'p', events: [], preFilter: () => SKIP, ...plugin },
  state: undefined,
})
const reason = (message: string) => ({ type: message, message })
const search = (plugins: ActivePlugin[], count: number, startAt = 0, random = () => 0.99) =>
  findNode(plugins, { nodes: createNodes(count), startAt, random })

describe('findNode', () => {
  it('stops after a fraction of the nodes in a large cluster', () => {
    expect([1, 100, 200, 1_000, 5_000, 20_000].map(numFeasibleNodesToFind)).toEqual([1, 100, 100, 420, 500, 1_000])
  })

  it('starts at the given node and wraps around', () => {
    const visited: string[] = []
    const result = search([activate({ filter: (_, node) => void visited.push(node.name) })], 300, 290)
    expect(result).toMatchObject({ is: 'found', visitedCount: 144 })
    expect([visited[0], visited[9], visited[10]]).toEqual(['n290', 'n299', 'n0'])
  })

  it('selects the node with the highest weighted sum of scores', () => {
    const preferNode = (preferred: string) =>
      activate({ score: (_, candidates) => candidates.map(({ name }) => (name === preferred ? 100 : 0)) })
    const preferN2WithWeight2 = activate({
      weight: () => 2,
      score: (_, candidates) => candidates.map(({ name }) => (name === 'n2' ? 60 : 0)),
    })
    expect(search([preferNode('n1'), preferN2WithWeight2], 3)).toMatchObject({ node: { name: 'n2' } })
  })

  it('breaks ties at random with equal probability', () => {
    const counts = new Map<string, number>()
    let state = 1
    const random = () => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    for (let i = 0; i < 3_000; i++) {
      const result = search([], 3, 0, random)
      if (result.is === 'found') counts.set(result.node.name, (counts.get(result.node.name) ?? 0) + 1)
    }
    for (const name of ['n0', 'n1', 'n2']) expect(counts.get(name)).toBeGreaterThan(900)
  })

  it('selects an avoided node only if no other node is feasible', () => {
    const avoidN0 = activate({ avoid: (_, { name }) => name === 'n0' })
    expect(search([avoidN0], 2)).toMatchObject({ node: { name: 'n1' } })
    expect(search([avoidN0], 1)).toMatchObject({ node: { name: 'n0' } })
  })

  it('CAP-12 returns the first rejection of each node and the rejecting plugins', () => {
    const firstPlugin = activate({
      name: 'first',
      filter: (_, { name }) => (name === 'n0' ? unschedulable(reason('closed')) : undefined),
    })
    const secondPlugin = activate({ name: 'second', filter: () => unschedulable(reason('full'), reason('small')) })
    const result = search([firstPlugin, secondPlugin], 2)
    const types =
      result.is === 'none' && [...result.statuses.values()].map(({ reasons }) => reasons.map(({ type }) => type))
    expect(types).toEqual([['closed'], ['full', 'small']])
    expect(result.is === 'none' && [...result.rejectedBy]).toEqual(['first', 'second'])
  })
})
