import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PreparationError } from './preparation-error.ts'
import {
  flattenTerms,
  fnv1,
  type NodeTopologies,
  sortTerms,
  spreadIndex,
  type Term,
  type TopologyQuery,
  termOf,
  topologyRequirement,
} from './topology.ts'

interface NodeFields {
  readonly labels?: Record<string, string>
  /** Undefined if the node has no CSINode. */
  readonly keys?: string[]
}

function topologiesOf(nodes: Record<string, NodeFields>): NodeTopologies {
  const nodeList = Object.values(nodes)
  return {
    keysOf: (name) => nodes[name]?.keys,
    labelsOf: (name) => nodes[name]?.labels,
    keysOfAnyNode: () => nodeList.find(({ keys }) => keys?.length)?.keys ?? [],
    termsOf: (keys) =>
      sortTerms(nodeList.map(({ labels = {} }) => termOf(labels, keys)).filter((term) => term !== undefined)),
  }
}
const nodesInZones = (...names: string[]) =>
  topologiesOf(Object.fromEntries(names.map((zone) => [`in-${zone}`, { labels: { zone }, keys: ['zone'] }])))

const aSelector = (...terms: Record<string, string[]>[]) =>
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
    nodes: nodesInZones('z1', 'z2', 'z3'),
    claimTopology: { node: undefined },
    ...query,
  })
const formatTerms = (terms: readonly Term[] | undefined) =>
  terms?.map((term) => term.map(([key, value]) => `${key}=${value}`).join(' '))

const catchError = (run: () => unknown): PreparationError => {
  try {
    run()
  } catch (error) {
    return error as PreparationError
  }
  throw new Error('no error was thrown')
}

const RACKS = topologiesOf({
  a: { labels: { zone: 'z1', rack: 'rA' }, keys: ['zone', 'rack'] },
  b: { labels: { zone: 'z2', rack: 'rA' }, keys: ['zone', 'rack'] },
  c: { labels: { zone: 'z2', rack: 'rB' }, keys: ['zone', 'rack'] },
})

describe('topologyRequirement with delayed binding', () => {
  it('returns only the selected node with strict topology', () => {
    const { requisite, preferred } = plan({ selectedNode: 'in-z2', strict: true })!
    expect(formatTerms(requisite)).toEqual(['zone=z2'])
    expect(formatTerms(preferred)).toEqual(['zone=z2'])
  })

  it('rejects a selected node outside the allowed topologies with strict topology', () => {
    const requirement = plan({
      nodes: RACKS,
      selectedNode: 'b',
      strict: true,
      allowedTopologies: aSelector({ zone: ['z2'] }),
    })
    expect(formatTerms(requirement?.requisite)).toEqual(['rack=rA zone=z2'])
    const error = catchError(() =>
      plan({ nodes: RACKS, selectedNode: 'b', strict: true, allowedTopologies: aSelector({ zone: ['z1'] }) }),
    )
    expect(error.failure).toBe('noChange')
    expect(error.message).toContain('selected node "b" topology {rack: rA, zone: z2} is not in allowed topologies')
  })

  it('returns the terms of all nodes and prefers the selected node', () => {
    const { requisite, preferred } = plan({ selectedNode: 'in-z2' })!
    expect(formatTerms(requisite)).toEqual(['zone=z1', 'zone=z2', 'zone=z3'])
    expect(formatTerms(preferred)).toEqual(['zone=z2', 'zone=z3', 'zone=z1'])
  })

  it('returns each combination of the allowed topologies and prefers the selected node', () => {
    const requirement = plan({
      nodes: RACKS,
      selectedNode: 'b',
      allowedTopologies: aSelector({ zone: ['z1', 'z2'], rack: ['rA', 'rB'] }),
    })
    expect(formatTerms(requirement?.requisite)).toEqual([
      'rack=rA zone=z1',
      'rack=rA zone=z2',
      'rack=rB zone=z1',
      'rack=rB zone=z2',
    ])
    expect(formatTerms(requirement?.preferred)).toEqual([
      'rack=rA zone=z2',
      'rack=rB zone=z1',
      'rack=rB zone=z2',
      'rack=rA zone=z1',
    ])
  })

  it('returns only the keys of the allowed topologies if the node has more keys', () => {
    const requirement = plan({ nodes: RACKS, selectedNode: 'b', allowedTopologies: aSelector({ zone: ['z1', 'z2'] }) })
    expect(formatTerms(requirement?.preferred)).toEqual(['zone=z2', 'zone=z1'])
  })

  it('rejects a node outside the allowed topologies', () => {
    const error = catchError(() => plan({ selectedNode: 'in-z3', allowedTopologies: aSelector({ zone: ['z1'] }) }))
    expect(error.message).toContain('from selected node "in-z3" is not in requisite: {zone: z1}')
  })

  it('includes nodes without the driver and returns each distinct term once', () => {
    const nodes = topologiesOf({
      a: { labels: { zone: 'z1' }, keys: ['zone'] },
      twin: { labels: { zone: 'z1' }, keys: ['zone'] },
      bare: { labels: { zone: 'z2' } },
      other: { labels: { region: 'r' } },
    })
    expect(formatTerms(plan({ nodes, selectedNode: 'a' })?.requisite)).toEqual(['zone=z1', 'zone=z2'])
  })

  it('reschedules if the node has no CSINode, and retries if it has no keys or labels', () => {
    const nodes = topologiesOf({
      none: { labels: { zone: 'z1' } },
      keyless: { labels: { zone: 'z1' }, keys: [] },
      unlabeled: { labels: {}, keys: ['zone'] },
      gone: { keys: ['zone'] },
    })
    expect(catchError(() => plan({ nodes, selectedNode: 'none' }))).toMatchObject({ failure: 'reschedule' })
    const keyless = catchError(() => plan({ nodes, selectedNode: 'keyless' }))
    expect(keyless.failure).toBe('noChange')
    expect(keyless.message).toContain('no topology key found for node keyless')
    expect(catchError(() => plan({ nodes, selectedNode: 'unlabeled' })).failure).toBe('noChange')
    expect(catchError(() => plan({ nodes, selectedNode: 'gone' })).failure).toBe('noChange')
  })

  it('returns the same requirement in a retry after the node was deleted', () => {
    const claimTopology = { node: 'in-z2' }
    const firstRequirement = plan({ selectedNode: 'in-z2', claimTopology })
    expect(plan({ selectedNode: 'in-z2', claimTopology, nodes: topologiesOf({}) })).toEqual(firstRequirement)
    expect(catchError(() => plan({ selectedNode: 'in-z2', nodes: topologiesOf({}) })).failure).toBe('reschedule')
  })

  it('reschedules in a retry if the CSINode was deleted after its node', () => {
    const claimTopology = { node: 'lost' }
    const topologiesWithoutNode = topologiesOf({ lost: { keys: ['zone'] } })
    expect(catchError(() => plan({ selectedNode: 'lost', nodes: topologiesWithoutNode, claimTopology })).failure).toBe(
      'noChange',
    )
    const retry = catchError(() => plan({ selectedNode: 'lost', nodes: topologiesOf({}), claimTopology }))
    expect(retry.failure).toBe('reschedule')
  })

  it('reads labels that are added before a retry', () => {
    const claimTopology = { node: 'late' }
    const unlabeled = topologiesOf({ late: { labels: {}, keys: ['zone'] } })
    catchError(() => plan({ selectedNode: 'late', nodes: unlabeled, claimTopology }))
    const labeled = topologiesOf({ late: { labels: { zone: 'z9' }, keys: ['zone'] } })
    expect(formatTerms(plan({ selectedNode: 'late', nodes: labeled, claimTopology })?.requisite)).toEqual(['zone=z9'])
  })
})

describe('topologyRequirement with immediate binding', () => {
  it("returns the terms of all nodes and prefers the term at the claim's index", () => {
    const requirement = plan({ claimName: 'data-web-1' })
    expect(formatTerms(requirement?.requisite)).toEqual(['zone=z1', 'zone=z2', 'zone=z3'])
    expect(formatTerms(requirement?.preferred)).toEqual(['zone=z2', 'zone=z3', 'zone=z1'])
  })

  it('returns the allowed topologies regardless of the nodes', () => {
    const requirement = plan({
      claimName: 'data-web-1',
      nodes: topologiesOf({}),
      allowedTopologies: aSelector({ zone: ['b', 'a'] }, { zone: ['a'], rack: ['1'] }),
    })
    expect(formatTerms(requirement?.requisite)).toEqual(['zone=a', 'zone=b', 'rack=1 zone=a'])
    expect(formatTerms(requirement?.preferred)).toEqual(['zone=b', 'rack=1 zone=a', 'zone=a'])
  })

  it('returns no requirement if the option is off or the class has only empty terms', () => {
    expect(plan({ immediate: false })).toBeUndefined()
    expect(plan({ allowedTopologies: [{ matchLabelExpressions: [] }] })).toBeUndefined()
  })

  it('retries if no node has keys or labels', () => {
    expect(catchError(() => plan({ nodes: topologiesOf({}) })).message).toContain('no available topology found')
    const unlabeled = topologiesOf({ a: { labels: {}, keys: ['zone'] } })
    expect(catchError(() => plan({ nodes: unlabeled }))).toMatchObject({ failure: 'noChange' })
  })

  it('rotates the claims of a StatefulSet over the zones', () => {
    const nodes = nodesInZones('1', '2', '3', '4')
    const firstPreferredTerm = (claimName: string) => formatTerms(plan({ claimName, nodes })?.preferred)?.[0]
    expect([1, 2, 3, 4].map((n) => firstPreferredTerm(`x-testset-${n}`))).toEqual([
      'zone=1',
      'zone=2',
      'zone=3',
      'zone=4',
    ])
    expect(firstPreferredTerm('y-testset-3')).toBe(firstPreferredTerm('x-testset-3'))
  })
})

describe('spreadIndex', () => {
  it.each([
    ['testset', 0x61628cc3],
    ['web', 0x46661985],
    ['', 0x811c9dc5],
  ])('computes the FNV-1 of %j as external-provisioner does', (text, hash) => {
    expect(fnv1(text)).toBe(hash)
  })

  it("adds the StatefulSet ordinal to the name's hash", () => {
    expect(spreadIndex('data-web-0', 3)).toBe(0)
    expect(spreadIndex('web-5', 3)).toBe(spreadIndex('data-web-5', 3))
    expect(spreadIndex('web-4294967296', 7)).toBe(fnv1('web-4294967296') % 7) // not a 32-bit number
    expect(spreadIndex('orders', 5)).toBe(fnv1('orders') % 5)
    expect(spreadIndex('a-4294967295', 5)).toBe(((fnv1('a') + 4294967295) % 2 ** 32) % 5)
  })

  it('returns consecutive indexes for consecutive ordinals', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z][a-z-]{0,8}[a-z]$/),
        fc.nat(1_000_000),
        fc.integer({ min: 1, max: 50 }),
        (name, i, n) => {
          const index = spreadIndex(`${name}-${i}`, n)
          const nextIndex = spreadIndex(`${name}-${i + 1}`, n)
          expect(index).toBeLessThan(n)
          // The indexes are not consecutive if the sum overflows 32 bits.
          const wraps = fnv1(name.slice(name.lastIndexOf('-') + 1)) + i + 1 === 2 ** 32
          if (!wraps) expect(nextIndex).toBe((index + 1) % n)
        },
      ),
    )
  })
})

describe('topology terms', () => {
  const aTerm = fc
    .dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3'), { minKeys: 1 })
    .map((labels) => termOf(labels, Object.keys(labels))!)

  it('are sorted and distinct for any order of the input', () => {
    fc.assert(
      fc.property(fc.array(aTerm), fc.infiniteStream(fc.nat()), (terms, order) => {
        const shuffled = terms
          .map((term) => ({ term, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ term }) => term)
        const sorted = sortTerms(shuffled)
        expect(sorted).toEqual(sortTerms(terms))
        expect(new Set(sorted.map((term) => JSON.stringify(term))).size).toBe(sorted.length)
        for (const [i, term] of sorted.entries())
          if (i > 0) expect(sorted[i - 1]!.length).toBeLessThanOrEqual(term.length)
      }),
    )
  })

  it("are all combinations of an allowed topology's values, up to a maximum", () => {
    expect(flattenTerms(aSelector({ zone: ['1', '2'], rack: ['a'] })).length).toBe(2)
    const values = Array.from({ length: 101 }, (_, i) => String(i))
    expect(catchError(() => flattenTerms(aSelector({ a: values, b: values }))).message).toContain(
      'more than 10000 combinations',
    )
  })

  it('are rotated in the preferred topologies', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1 }),
        fc.string(),
        (names, claimName) => {
          const { requisite, preferred } = plan({ claimName, nodes: nodesInZones(...names) })!
          expect(sortTerms(preferred)).toEqual(requisite)
          const index = formatTerms(requisite)!.indexOf(formatTerms(preferred)![0]!)
          expect(preferred).toEqual([...requisite.slice(index), ...requisite.slice(0, index)])
        },
      ),
    )
  })
})
