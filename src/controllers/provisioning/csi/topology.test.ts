import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { oneNodeTopology } from './node-topologies.ts'
import type { Refusal } from './refusal.ts'
import {
  flattened,
  fnv1,
  type NodeTopologies,
  sortedTerms,
  spreadIndex,
  type Term,
  type TopologyQuery,
  termOf,
  topologyRequirement,
} from './topology.ts'
import { createTopologyMemory } from './topology-memory.ts'

interface ANode {
  readonly labels?: Record<string, string>
  /** Undefined: it has no CSINode. */
  readonly keys?: string[]
}

function cluster(nodes: Record<string, ANode>): NodeTopologies {
  const all = Object.values(nodes)
  return {
    keysOf: (name) => nodes[name]?.keys,
    labelsOf: (name) => nodes[name]?.labels,
    someKeys: () => all.find(({ keys }) => keys?.length)?.keys ?? [],
    termsOf: (keys) =>
      sortedTerms(all.map(({ labels = {} }) => termOf(labels, keys)).filter((term) => term !== undefined)),
  }
}
const zones = (...names: string[]) =>
  cluster(Object.fromEntries(names.map((zone) => [`in-${zone}`, { labels: { zone }, keys: ['zone'] }])))

const allowed = (...terms: Record<string, string[]>[]) =>
  terms.map((term) => ({
    matchLabelExpressions: Object.entries(term).map(([key, values]) => ({ key, values })),
  }))

const plan = (query: Partial<TopologyQuery>) =>
  topologyRequirement({
    claimName: 'claim',
    selectedNode: undefined,
    allowedTopologies: undefined,
    strict: false,
    immediate: true,
    nodes: zones('z1', 'z2', 'z3'),
    memory: { node: undefined },
    ...query,
  })
const written = (terms: readonly Term[] | undefined) =>
  terms?.map((term) => term.map(([key, value]) => `${key}=${value}`).join(' '))

const refusalOf = (run: () => unknown): Refusal => {
  try {
    run()
  } catch (error) {
    return error as Refusal
  }
  throw new Error('it was not refused')
}

const racks = cluster({
  a: { labels: { zone: 'z1', rack: 'rA' }, keys: ['zone', 'rack'] },
  b: { labels: { zone: 'z2', rack: 'rA' }, keys: ['zone', 'rack'] },
  c: { labels: { zone: 'z2', rack: 'rB' }, keys: ['zone', 'rack'] },
})

describe('topology requirement, delayed binding', () => {
  it('PROV-9 strict: only the selected node', () => {
    const { requisite, preferred } = plan({ selectedNode: 'in-z2', strict: true })!
    expect(written(requisite)).toEqual(['zone=z2'])
    expect(written(preferred)).toEqual(['zone=z2'])
  })

  it('PROV-9 strict with allowed topologies: all keys of the node, and an error outside of them', () => {
    const inside = plan({ nodes: racks, selectedNode: 'b', strict: true, allowedTopologies: allowed({ zone: ['z2'] }) })
    expect(written(inside?.requisite)).toEqual(['rack=rA zone=z2'])
    const refusal = refusalOf(() =>
      plan({ nodes: racks, selectedNode: 'b', strict: true, allowedTopologies: allowed({ zone: ['z1'] }) }),
    )
    expect(refusal.how).toBe('noChange')
    expect(refusal.message).toContain('selected node "b" topology {rack: rA, zone: z2} is not in allowed topologies')
  })

  it('PROV-9 not strict: every node, the selected one first', () => {
    const { requisite, preferred } = plan({ selectedNode: 'in-z2' })!
    expect(written(requisite)).toEqual(['zone=z1', 'zone=z2', 'zone=z3'])
    expect(written(preferred)).toEqual(['zone=z2', 'zone=z3', 'zone=z1'])
  })

  it('PROV-9 not strict with allowed topologies: each combination, that of the selected node first', () => {
    const requirement = plan({
      nodes: racks,
      selectedNode: 'b',
      allowedTopologies: allowed({ zone: ['z1', 'z2'], rack: ['rA', 'rB'] }),
    })
    expect(written(requirement?.requisite)).toEqual([
      'rack=rA zone=z1',
      'rack=rA zone=z2',
      'rack=rB zone=z1',
      'rack=rB zone=z2',
    ])
    expect(written(requirement?.preferred)).toEqual([
      'rack=rA zone=z2',
      'rack=rB zone=z1',
      'rack=rB zone=z2',
      'rack=rA zone=z1',
    ])
  })

  it('PROV-9 allowed topologies with fewer keys than the node keep only their own keys', () => {
    const requirement = plan({ nodes: racks, selectedNode: 'b', allowedTopologies: allowed({ zone: ['z1', 'z2'] }) })
    expect(written(requirement?.preferred)).toEqual(['zone=z2', 'zone=z1'])
  })

  it('PROV-9 rejects a node outside the allowed topologies', () => {
    const refusal = refusalOf(() => plan({ selectedNode: 'in-z3', allowedTopologies: allowed({ zone: ['z1'] }) }))
    expect(refusal.message).toContain('from selected node "in-z3" is not in requisite: {zone: z1}')
  })

  it('PROV-9 includes nodes without the driver, each distinct term once', () => {
    const nodes = cluster({
      a: { labels: { zone: 'z1' }, keys: ['zone'] },
      twin: { labels: { zone: 'z1' }, keys: ['zone'] },
      bare: { labels: { zone: 'z2' } },
      other: { labels: { region: 'r' } },
    })
    expect(written(plan({ nodes, selectedNode: 'a' })?.requisite)).toEqual(['zone=z1', 'zone=z2'])
  })

  it('PROV-9 reschedules for a node without CSINode, and retries without keys or labels', () => {
    const nodes = cluster({
      none: { labels: { zone: 'z1' } },
      keyless: { labels: { zone: 'z1' }, keys: [] },
      unlabelled: { labels: {}, keys: ['zone'] },
      gone: { keys: ['zone'] },
    })
    expect(refusalOf(() => plan({ nodes, selectedNode: 'none' }))).toMatchObject({ how: 'reschedule' })
    const keyless = refusalOf(() => plan({ nodes, selectedNode: 'keyless' }))
    expect(keyless.how).toBe('noChange')
    expect(keyless.message).toContain('no topology key found for node keyless')
    expect(refusalOf(() => plan({ nodes, selectedNode: 'unlabelled' })).how).toBe('noChange')
    expect(refusalOf(() => plan({ nodes, selectedNode: 'gone' })).how).toBe('noChange')
  })

  it('PROV-9 repeats the same requirement in a retry, also after the node was deleted', () => {
    const memory = { node: 'in-z2' }
    const first = plan({ selectedNode: 'in-z2', memory })
    expect(plan({ selectedNode: 'in-z2', memory, nodes: cluster({}) })).toEqual(first)
    expect(refusalOf(() => plan({ selectedNode: 'in-z2', nodes: cluster({}) })).how).toBe('reschedule')
  })

  it('PROV-9 reads labels that appear between two tries', () => {
    const memory = { node: 'late' }
    const before = cluster({ late: { labels: {}, keys: ['zone'] } })
    refusalOf(() => plan({ selectedNode: 'late', nodes: before, memory }))
    const after = cluster({ late: { labels: { zone: 'z9' }, keys: ['zone'] } })
    expect(written(plan({ selectedNode: 'late', nodes: after, memory })?.requisite)).toEqual(['zone=z9'])
  })
})

describe('topology requirement, immediate binding', () => {
  it('PROV-9 every node, starting at the index of the claim', () => {
    const requirement = plan({ claimName: 'data-web-1' })
    expect(written(requirement?.requisite)).toEqual(['zone=z1', 'zone=z2', 'zone=z3'])
    expect(written(requirement?.preferred)).toEqual(['zone=z2', 'zone=z3', 'zone=z1'])
  })

  it('PROV-9 the allowed topologies, regardless of the nodes', () => {
    const requirement = plan({
      claimName: 'data-web-1',
      nodes: cluster({}),
      allowedTopologies: allowed({ zone: ['b', 'a'] }, { zone: ['a'], rack: ['1'] }),
    })
    expect(written(requirement?.requisite)).toEqual(['zone=a', 'zone=b', 'rack=1 zone=a'])
    expect(written(requirement?.preferred)).toEqual(['zone=b', 'rack=1 zone=a', 'zone=a'])
  })

  it('PROV-9 none without the option, or if the class has only empty terms', () => {
    expect(plan({ immediate: false })).toBeUndefined()
    expect(plan({ allowedTopologies: [{ matchLabelExpressions: [] }] })).toBeUndefined()
  })

  it('PROV-9 retries if no node has keys or labels', () => {
    expect(refusalOf(() => plan({ nodes: cluster({}) })).message).toContain('no available topology found')
    const unlabelled = cluster({ a: { labels: {}, keys: ['zone'] } })
    expect(refusalOf(() => plan({ nodes: unlabelled }))).toMatchObject({ how: 'noChange' })
  })

  it('PROV-9 rotates the claims of a StatefulSet over the zones', () => {
    const nodes = zones('1', '2', '3', '4')
    const first = (claimName: string) => written(plan({ claimName, nodes })?.preferred)?.[0]
    expect([1, 2, 3, 4].map((n) => first(`x-testset-${n}`))).toEqual(['zone=1', 'zone=2', 'zone=3', 'zone=4'])
    expect(first('y-testset-3')).toBe(first('x-testset-3'))
  })
})

describe('spreading', () => {
  it.each([
    ['testset', 0x61628cc3],
    ['web', 0x46661985],
    ['', 0x811c9dc5],
  ])('PROV-9 computes the FNV-1 of %j as external-provisioner does', (text, hash) => {
    expect(fnv1(text)).toBe(hash)
  })

  it('PROV-9 uses FNV-1, and the ordinal of a StatefulSet', () => {
    expect(spreadIndex('data-web-0', 3)).toBe(0)
    expect(spreadIndex('web-5', 3)).toBe(spreadIndex('data-web-5', 3))
    expect(spreadIndex('web-4294967296', 7)).toBe(fnv1('web-4294967296') % 7) // no 32-bit number
    expect(spreadIndex('orders', 5)).toBe(fnv1('orders') % 5)
    expect(spreadIndex('a-4294967295', 5)).toBe(((fnv1('a') + 4294967295) % 2 ** 32) % 5)
  })

  it('PROV-9 gives consecutive ordinals consecutive indexes', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z][a-z-]{0,8}[a-z]$/),
        fc.nat(1_000_000),
        fc.integer({ min: 1, max: 50 }),
        (name, i, n) => {
          const here = spreadIndex(`${name}-${i}`, n)
          const next = spreadIndex(`${name}-${i + 1}`, n)
          expect(here).toBeLessThan(n)
          // The sum wraps at 32 bits, and there, and only there, the round starts elsewhere.
          const wraps = fnv1(name.slice(name.lastIndexOf('-') + 1)) + i + 1 === 2 ** 32
          if (!wraps) expect(next).toBe((here + 1) % n)
        },
      ),
    )
  })
})

describe('terms', () => {
  const aTerm = fc
    .dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3'), { minKeys: 1 })
    .map((labels) => termOf(labels, Object.keys(labels))!)

  it('are sorted and distinct, in any input order', () => {
    fc.assert(
      fc.property(fc.array(aTerm), fc.infiniteStream(fc.nat()), (terms, order) => {
        const shuffled = terms
          .map((term) => ({ term, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ term }) => term)
        const sorted = sortedTerms(shuffled)
        expect(sorted).toEqual(sortedTerms(terms))
        expect(new Set(sorted.map((term) => JSON.stringify(term))).size).toBe(sorted.length)
        for (const [i, term] of sorted.entries())
          if (i > 0) expect(sorted[i - 1]!.length).toBeLessThanOrEqual(term.length)
      }),
    )
  })

  it('are the product of the values of a class term, rejected if too large', () => {
    expect(flattened(allowed({ zone: ['1', '2'], rack: ['a'] })).length).toBe(2)
    const values = Array.from({ length: 101 }, (_, i) => String(i))
    expect(refusalOf(() => flattened(allowed({ a: values, b: values }))).message).toContain(
      'more than 10000 combinations',
    )
  })

  it('preferred is a rotation of requisite', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1 }),
        fc.string(),
        (names, claimName) => {
          const { requisite, preferred } = plan({ claimName, nodes: zones(...names) })!
          expect(sortedTerms(preferred)).toEqual(requisite)
          const at = written(requisite)!.indexOf(written(preferred)![0]!)
          expect(preferred).toEqual([...requisite.slice(at), ...requisite.slice(0, at)])
        },
      ),
    )
  })
})

describe('topology memory', () => {
  it('is dropped with the claim, and with its node unless the request must be repeated', () => {
    const memory = createTopologyMemory()
    const first = memory.of('uid', 'node-a', false)
    first.keys = ['zone']
    expect(memory.of('uid', 'node-a', false)).toBe(first)
    expect(memory.of('uid', 'node-b', true)).toBe(first)
    expect(memory.of('uid', 'node-b', false).keys).toBeUndefined()
    memory.forget('uid')
    expect(memory.size).toBe(0)
  })

  it('is bounded', () => {
    const memory = createTopologyMemory()
    for (let i = 0; i < 10_050; i++) memory.of(`uid-${i}`, undefined, false)
    expect(memory.size).toBe(10_000)
  })
})

describe('a provisioner of one node', () => {
  it('PROV-9 knows its own node and no other', () => {
    const nodes = oneNodeTopology('here', { host: 'here' })
    expect(written(plan({ nodes, selectedNode: 'here', strict: true })?.requisite)).toEqual(['host=here'])
    expect(refusalOf(() => plan({ nodes, selectedNode: 'there' })).how).toBe('reschedule')
  })
})
