import { describe, expect, it } from 'vitest'
import { NodeInfo } from './cluster/node-info.ts'
import { findNode, nodesToFind, type Opinion } from './find-node.ts'
import type { Judge } from './framework/plugin.ts'

const nodes = (count: number) => Array.from({ length: count }, (_, index) => new NodeInfo(`n${index}`))
const opinion = (judge: Omit<Judge, 'is'>, weight = 1, name = 'p'): Opinion => ({
  plugin: { name, weight, prepare: () => ({ is: 'judge' }) },
  judge: { is: 'judge', ...judge },
})
const search = (opinions: Opinion[], count: number, startAt = 0, random = () => 0.99) =>
  findNode(opinions, { nodes: nodes(count), startAt, random })

describe('the search for a node', () => {
  it('CAP-16 looks at all of a small cluster and at a part of a large one', () => {
    expect([1, 100, 200, 1_000, 5_000, 20_000].map(nodesToFind)).toEqual([1, 100, 100, 420, 500, 1_000])
  })

  it('CAP-16 goes on where the last one ended, and round', () => {
    const seen: string[] = []
    const found = search([opinion({ refuses: (node) => void seen.push(node.name) })], 300, 290)
    expect(found).toMatchObject({ is: 'found', looked: 144 })
    expect([seen[0], seen[9], seen[10]]).toEqual(['n290', 'n299', 'n0'])
  })

  it('CAP-16 takes the best by the sum of weighted scores', () => {
    const likes = (which: string) => opinion({ scores: (all) => all.map(({ name }) => (name === which ? 100 : 0)) })
    const twice = opinion({ scores: (all) => all.map(({ name }) => (name === 'n2' ? 60 : 0)) }, 2)
    expect(search([likes('n1'), twice], 3)).toMatchObject({ node: { name: 'n2' } })
  })

  it('CAP-16 breaks ties by chance, each as likely as the other', () => {
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

  it('CAP-13 takes an avoided node only when there is no other', () => {
    const avoids = opinion({ avoids: ({ name }) => name === 'n0' })
    expect(search([avoids], 2)).toMatchObject({ node: { name: 'n1' } })
    expect(search([avoids], 1)).toMatchObject({ node: { name: 'n0' } })
  })

  it('CAP-12 tells who refused, each node by the first that minded', () => {
    const first = opinion({ refuses: ({ name }) => (name === 'n0' ? ['closed'] : undefined) }, 1, 'first')
    const second = opinion({ refuses: () => ['full', 'small'] }, 1, 'second')
    const found = search([first, second], 2)
    expect(found.is === 'none' && [...found.refusals.values()]).toEqual([['closed'], ['full', 'small']])
    expect(found.is === 'none' && [...found.refusedBy]).toEqual(['first', 'second'])
  })
})
