// Tests the folding of profiles and the flame graph page.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CallFrame, type CpuProfile, type Flame, findHottestFunctions, foldProfiles } from './flame-graph.ts'
import { renderFlamePage } from './flame-page.ts'

const frame = (functionName: string): CallFrame => ({ functionName, url: 'x.js', lineNumber: 0, columnNumber: 0 })
const nameOf = ({ functionName }: CallFrame) => functionName

/** Calls as name, id of the parent (the root is 1) and microseconds. */
function profile(calls: readonly [name: string, parent: number, selfMicros: number][]): CpuProfile {
  const children = (id: number) => calls.flatMap(([, parent], index) => (parent === id ? [index + 2] : []))
  return {
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: children(1) },
      ...calls.map(([name], index) => ({ id: index + 2, callFrame: frame(name), children: children(index + 2) })),
    ],
    samples: calls.map((_, index) => index + 2),
    timeDeltas: calls.map(([, , micros]) => micros),
  }
}

const flameAt = (flame: Flame, ...path: string[]): Flame | undefined =>
  path.reduce<Flame | undefined>((parentFlame, name) => parentFlame?.children.get(name), flame)

describe('folding profiles', () => {
  it('adds the time of a function to its callers', () => {
    const root = foldProfiles(
      [
        profile([
          ['main', 1, 10],
          ['create', 2, 30],
          ['encode', 3, 60],
        ]),
      ],
      nameOf,
    )
    expect(root.total).toBe(100)
    expect(flameAt(root, 'main')).toMatchObject({ self: 10, total: 100 })
    expect(flameAt(root, 'main', 'create', 'encode')).toMatchObject({ self: 60, total: 60 })
  })

  it('merges equal stacks of several processes', () => {
    const firstProfile = profile([
      ['main', 1, 10],
      ['create', 2, 30],
    ])
    const secondProfile = profile([
      ['main', 1, 5],
      ['create', 2, 7],
      ['list', 2, 9],
    ])
    const root = foldProfiles([firstProfile, secondProfile], nameOf)
    expect(flameAt(root, 'main', 'create')).toMatchObject({ self: 37 })
    expect(flameAt(root, 'main', 'list')).toMatchObject({ self: 9 })
  })

  it('omits idle time', () => {
    const root = foldProfiles(
      [
        profile([
          ['(idle)', 1, 900],
          ['main', 1, 100],
        ]),
      ],
      nameOf,
    )
    expect(root.total).toBe(100)
    expect([...root.children.keys()]).toContain('main')
  })

  it('keeps the total time of any tree', () => {
    const calls = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(), fc.nat({ max: 1_000 })), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(calls, (generatedCalls) => {
        const tree = generatedCalls.map(([name, parent, micros], index): [string, number, number] => [
          name,
          1 + (parent % (index + 1)),
          micros,
        ])
        const root = foldProfiles([profile(tree)], nameOf)
        const selfOf = (flame: Flame): number =>
          [...flame.children.values()].reduce((sum, child) => sum + selfOf(child), flame.self)
        const totalMicros = tree.reduce((sum, [, , micros]) => sum + micros, 0)
        expect(root.total).toBe(totalMicros)
        expect(selfOf(root)).toBe(totalMicros)
        expect(findHottestFunctions(root, 10).reduce((sum, { self }) => sum + self, 0)).toBe(totalMicros)
      }),
    )
  })

  it('ranks functions by their own time, and counts recursion once', () => {
    const root = foldProfiles(
      [
        profile([
          ['walk', 1, 10],
          ['walk', 2, 20],
          ['leaf', 3, 40],
        ]),
      ],
      nameOf,
    )
    expect(findHottestFunctions(root, 2)).toEqual([
      { name: 'leaf', self: 40, total: 40 },
      { name: 'walk', self: 30, total: 70 },
    ])
  })
})

describe('the page of a flame graph', () => {
  it('is self-contained, lists the hottest functions and escapes names', () => {
    const root = foldProfiles(
      [
        profile([
          ['</script><b>', 1, 90],
          ['main', 1, 10],
        ]),
      ],
      nameOf,
    )
    const page = renderFlamePage('api-creates-server', root)
    expect(page).not.toMatch(/src=|href=/)
    expect(page.split('</script>')).toHaveLength(2)
    expect(page).toContain('<td>&lt;/script&gt;&lt;b&gt;<td>90.0 %')
  })

  it('omits bars that are too narrow to see', () => {
    const root = foldProfiles(
      [
        profile([
          ['main', 1, 1_000_000],
          ['once', 2, 1],
        ]),
      ],
      nameOf,
    )
    expect(/const root = (.*)/.exec(renderFlamePage('x', root))?.[1]).not.toContain('once')
  })
})
