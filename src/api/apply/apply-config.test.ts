import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, type Config, disjointConfigs, machineShape, nothing, Owned } from './apply.fixture.ts'
import { ConflictError } from './apply-config.ts'
import { compare } from './compare.ts'
import { pathsOf } from './field-set.ts'
import { appliedFields } from './fields-of.ts'
import { describePath } from './path-element.ts'

function conflictsOf(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof ConflictError) {
      return error.conflicts.map((one) => `${one.with.manager}: ${describePath(one.path)}`)
    }
    throw error
  }
  return []
}

/** An object without the order of lists that are owned item by item. */
const unordered = ({ parts, tags, ...rest }: Config) => ({
  ...rest,
  parts: parts?.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
  tags: tags?.toSorted(),
})

describe('apply (properties)', () => {
  it('results in an object that contains the configuration and a manager that owns all of it', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (first, config) => {
        const { object, entries } = nothing.applyAs('other', first).applyAs('me', config, { force: true })
        const { removed, modified } = compare(machineShape, config, object)
        expect({ removed, modified }).toEqual({ removed: {}, modified: {} })
        const mine = entries.find(({ manager }) => manager === 'me')?.fieldsV1 ?? {}
        expect(mine).toEqual(appliedFields(machineShape, config))
      }),
    )
  })

  it('changes nothing when applied again, not even the timestamp', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (first, config) => {
        const once = nothing.applyAs('other', first).applyAs('me', config, { force: true })
        const twice = once.applyAs('me', config)
        expect(twice.object).toEqual(once.object)
        expect(twice.entries).toEqual(once.entries)
      }),
    )
  })

  it('never conflicts with a manager of other fields, and an empty configuration keeps the fields of others', () => {
    fc.assert(
      fc.property(disjointConfigs, ([mine, theirs]) => {
        const before = nothing.applyAs('they', theirs)
        const after = before.applyAs('I', mine).applyAs('I', {})
        expect(unordered(after.object)).toEqual(unordered(before.object))
        expect(after.entries).toEqual(before.entries)
      }),
    )
  })

  it('gives the same result in either order if the fields are disjoint', () => {
    fc.assert(
      fc.property(disjointConfigs, ([a, b]) => {
        const one = nothing.applyAs('a', a).applyAs('b', b)
        const other = nothing.applyAs('b', b).applyAs('a', a)
        expect(unordered(one.object)).toEqual(unordered(other.object))
        expect(one.owners).toEqual(other.owners)
      }),
    )
  })

  it('moves from one configuration to the next as if the first had never been applied', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (first, second) => {
        const moved = nothing.applyAs('me', first).applyAs('me', second)
        const direct = nothing.applyAs('me', second)
        expect(unordered(moved.object)).toEqual(unordered(direct.object))
        expect(moved.owners).toEqual(direct.owners)
      }),
    )
  })

  it('conflicts exactly over the fields of other managers that would change', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (theirs, mine) => {
        const before = nothing.applyAs('they', theirs)
        const conflicts = conflictsOf(() => before.applyAs('I', mine))
        const { entries } = before.applyAs('I', mine, { force: true })
        const kept = pathsOf(entries.find(({ manager }) => manager === 'they')?.fieldsV1 ?? {}).map(describePath)
        const owned = pathsOf(appliedFields(machineShape, theirs)).map(describePath)
        expect(conflicts.sort()).toEqual(
          owned
            .filter((path) => !kept.includes(path))
            .map((path) => `they: ${path}`)
            .sort(),
        )
      }),
    )
  })
})

describe('apply', () => {
  it('rejects a change of a field that another manager owns, and names the field', () => {
    const machine = Owned.createdBy('maker', { colour: 'red', parts: [{ name: 'arm', weight: 1 }] })
    const config = { colour: 'blue', parts: [{ name: 'arm', weight: 2 }] }
    expect(conflictsOf(() => machine.applyAs('me', config))).toEqual([
      'maker: .colour',
      'maker: .parts[name="arm"].weight',
    ])
    expect(machine.applyAs('me', config, { force: true }).owners).toEqual({
      'me Apply': { 'f:colour': {}, 'f:parts': { 'k:{"name":"arm"}': { '.': {}, 'f:name': {}, 'f:weight': {} } } },
      'maker Update': { 'f:parts': { '.': {}, 'k:{"name":"arm"}': { '.': {}, 'f:name': {} } } },
    })
  })

  it('shares a field with a manager that has set it to the same value', () => {
    const shared = nothing.applyAs('a', { colour: 'red' }).applyAs('b', { colour: 'red' })
    expect(shared.owners).toEqual({ 'a Apply': { 'f:colour': {} }, 'b Apply': { 'f:colour': {} } })
    const left = shared.applyAs('a', {})
    expect(left.object.colour).toBe('red')
    expect(left.applyAs('b', {}).object.colour).toBeUndefined()
  })

  it('removes fields that it no longer sets, but not those that other managers set', () => {
    const machine = nothing
      .applyAs('me', { labels: { a: '1', b: '2' }, parts: [{ name: 'arm', weight: 1 }, { name: 'leg' }] })
      .applyAs('other', { parts: [{ name: 'leg', weight: 5 }] })
      .applyAs('me', { labels: { a: '1' } })
    expect(machine.object).toMatchObject({ labels: { a: '1' }, parts: [{ name: 'leg', weight: 5 }] })
  })

  it('keeps fields that an update added below a field that it no longer sets', () => {
    const machine = nothing.applyAs('me', { engine: { fuel: 'oil' } })
    const updated = machine.updateAs('other', { ...machine.object, engine: { fuel: 'oil', power: 3 } })
    expect(updated.applyAs('me', {}).object.engine).toEqual({ power: 3 })
  })

  /** Adds the fields without an owner, as server-side defaulting does. */
  const withUnowned = ({ object, entries, steps }: Owned, more: Config) =>
    new Owned({ ...object, ...more }, entries, steps)

  it('removes fields that the server added together with their parent', () => {
    const machine = withUnowned(nothing.applyAs('me', { engine: { fuel: 'oil' } }), {
      engine: { fuel: 'oil', power: 3 },
    })
    expect(machine.applyAs('me', { colour: 'red' }).object).not.toHaveProperty('engine')
  })

  it('keeps fields that the server added beside fields of other managers', () => {
    const owned = nothing.applyAs('me', { labels: { a: '1' } }).applyAs('other', { labels: { b: '2' } })
    const machine = withUnowned(owned, { labels: { a: '1', b: '2', added: '3' } })
    expect(machine.applyAs('me', {}).object.labels).toEqual({ b: '2', added: '3' })
  })

  it('uses the order of the configuration and keeps other items in place', () => {
    const machine = nothing.applyAs('other', { tags: ['a', 'b', 'c', 'd'] }).applyAs('me', { tags: ['d', 'x', 'b'] })
    expect(machine.object.tags).toEqual(['a', 'c', 'd', 'x', 'b'])
  })

  it('replaces atomic values as a whole', () => {
    const machine = nothing.applyAs('me', { settings: { a: '1' }, order: ['x'], joint: { from: 'p' } })
    const { object } = machine.applyAs('me', { settings: { b: '2' }, order: ['y'], joint: { to: 'q' } })
    expect(object).toMatchObject({ settings: { b: '2' }, order: ['y'], joint: { to: 'q' } })
    expect(object.settings).not.toHaveProperty('a')
    expect(object.joint).not.toHaveProperty('from')
  })

  it('owns an empty map, which adds nothing', () => {
    const machine = nothing.applyAs('me', { labels: {} })
    expect(machine.owners).toEqual({ 'me Apply': { 'f:labels': {} } })
    expect(machine.object.labels).toBeUndefined()
  })
})
