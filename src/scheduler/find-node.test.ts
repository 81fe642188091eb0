import { describe, expect, it } from 'vitest'
import { NodeInfo } from './cluster/node-info.ts'
import { type ActivePlugin, findNode, numFeasibleNodesToFind } from './find-node.ts'
import type { Plugin } from './framework/plugin.ts'
import { SKIP, unschedulable } from './framework/status.ts'

const nodes = (count: number) => Array.from({ length: count }, (_, index) => new NodeInfo(`n${index}`))
const active = (plugin: Partial<Plugin<undefined>>): ActivePlugin => ({
  plugin: { name: 'p', events: [], preFilter: () => SKIP, ...plugin },
  state: undefined,
})
const reason = (message: string) => ({ type: message, message })
const search = (plugins: ActivePlugin[], count: number, startAt = 0, random = () => 0.99) =>
  findNode(plugins, { nodes: nodes(count), startAt, random })

describe('the search for a node', () => {
  it('CAP-16 filters all nodes of a small cluster and a part of a large one', () => {
    expect([1, 100, 200, 1_000, 5_000, 20_000].map(numFeasibleNodesToFind)).toEqual([1, 100, 100, 420, 500, 1_000])
  })

  it('CAP-16 continues where the last search ended, and wraps around', () => {
    const seen: string[] = []
    const found = search([active({ filter: (_, node) => void seen.push(node.name) })], 300, 290)
    expect(found).toMatchObject({ is: 'found', visited: 144 })
    expect([seen[0], seen[9], seen[10]]).toEqual(['n290', 'n299', 'n0'])
  })

  it('CAP-16 takes the node with the highest weighted sum of scores', () => {
    const prefers = (which: string) => active({ score: (_, all) => all.map(({ name }) => (name === which ? 100 : 0)) })
    const twice = active({ weight: 2, score: (_, all) => all.map(({ name }) => (name === 'n2' ? 60 : 0)) })
    expect(search([prefers('n1'), twice], 3)).toMatchObject({ node: { name: 'n2' } })
  })

  it('CAP-16 breaks ties at random with equal probability', () => {
    const counts = new Map<string, number>()
    let state = 1
    const random = () => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    for (let i = 0; i < 3_000; i++) {
      const found = search([], 3, 0, random)
      if (found.is === 'found') counts.set(found.node.name, (counts.get(found.node.name) ?? 0) + 1)
    }
    for (const name of ['n0', 'n1', 'n2']) expect(counts.get(name)).toBeGreaterThan(900)
  })

  it('CAP-13 selects an avoided node only if there is no other', () => {
    const avoids = active({ avoid: (_, { name }) => name === 'n0' })
    expect(search([avoids], 2)).toMatchObject({ node: { name: 'n1' } })
    expect(search([avoids], 1)).toMatchObject({ node: { name: 'n0' } })
  })

  it('CAP-12 records the first rejection of each node, and the plugins that rejected', () => {
    const first = active({
      name: 'first',
      filter: (_, { name }) => (name === 'n0' ? unschedulable(reason('closed')) : undefined),
    })
    const second = active({ name: 'second', filter: () => unschedulable(reason('full'), reason('small')) })
    const found = search([first, second], 2)
    const types =
      found.is === 'none' && [...found.statuses.values()].map(({ reasons }) => reasons.map(({ type }) => type))
    expect(types).toEqual([['closed'], ['full', 'small']])
    expect(found.is === 'none' && [...found.rejectedBy]).toEqual(['first', 'second'])
  })
})
