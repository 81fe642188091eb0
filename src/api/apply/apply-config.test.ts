import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, type Config, disjointConfigs, emptyMachine, ManagedObject, machineShape } from './apply.fixture.ts'
import { ConflictError } from './apply-config.ts'
import { compareStates } from './compare-states.ts'
import { pathsOf } from './field-set.ts'
import { describePath } from './path-element.ts'
import { appliedFields } from './value-fields.ts'

function catchConflicts(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof ConflictError) {
      return error.conflicts.map((conflict) => `${conflict.owner.manager}: ${describePath(conflict.path)}`)
    }
    throw error
  }
  return []
}

/** Sorts the lists that are owned item by item, because the order of their items is not compared. */
const sortItems = ({ parts, tags, ...otherFields }: Config) => ({
  ...otherFields,
  parts: parts?.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
  tags: tags?.toSorted(),
})

describe('apply (properties)', () => {
  it('sets all fields of the configuration and makes the manager their owner', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (firstConfig, config) => {
        const { object, entries } = emptyMachine.applyAs('other', firstConfig).applyAs('me', config, { force: true })
        const { removed, modified } = compareStates(machineShape, config, object)
        expect({ removed, modified }).toEqual({ removed: {}, modified: {} })
        const ownFields = entries.find(({ manager }) => manager === 'me')?.fieldsV1 ?? {}
        expect(ownFields).toEqual(appliedFields(machineShape, config))
      }),
    )
  })

  it('changes neither the object nor the timestamp when the same configuration is applied again', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (firstConfig, config) => {
        const appliedMachine = emptyMachine.applyAs('other', firstConfig).applyAs('me', config, { force: true })
        const reappliedMachine = appliedMachine.applyAs('me', config)
        expect(reappliedMachine.object).toEqual(appliedMachine.object)
        expect(reappliedMachine.entries).toEqual(appliedMachine.entries)
      }),
    )
  })

  it('does not conflict with a manager of other fields, and keeps those fields when the configuration becomes empty', () => {
    fc.assert(
      fc.property(disjointConfigs, ([ownConfig, otherConfig]) => {
        const machineBefore = emptyMachine.applyAs('other', otherConfig)
        const machineAfter = machineBefore.applyAs('me', ownConfig).applyAs('me', {})
        expect(sortItems(machineAfter.object)).toEqual(sortItems(machineBefore.object))
        expect(machineAfter.entries).toEqual(machineBefore.entries)
      }),
    )
  })

  it('gives the same result in either order if the fields are disjoint', () => {
    fc.assert(
      fc.property(disjointConfigs, ([a, b]) => {
        const aFirst = emptyMachine.applyAs('a', a).applyAs('b', b)
        const bFirst = emptyMachine.applyAs('b', b).applyAs('a', a)
        expect(sortItems(aFirst.object)).toEqual(sortItems(bFirst.object))
        expect(aFirst.owners).toEqual(bFirst.owners)
      }),
    )
  })

  it('gives the same result as if the previous configuration had never been applied', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (firstConfig, secondConfig) => {
        const viaFirst = emptyMachine.applyAs('me', firstConfig).applyAs('me', secondConfig)
        const directMachine = emptyMachine.applyAs('me', secondConfig)
        expect(sortItems(viaFirst.object)).toEqual(sortItems(directMachine.object))
        expect(viaFirst.owners).toEqual(directMachine.owners)
      }),
    )
  })

  it('conflicts on exactly the fields of other managers that would change', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (otherConfig, ownConfig) => {
        const machineBefore = emptyMachine.applyAs('other', otherConfig)
        const conflicts = catchConflicts(() => machineBefore.applyAs('me', ownConfig))
        const { entries } = machineBefore.applyAs('me', ownConfig, { force: true })
        const keptPaths = pathsOf(entries.find(({ manager }) => manager === 'other')?.fieldsV1 ?? {}).map(describePath)
        const ownedPaths = pathsOf(appliedFields(machineShape, otherConfig)).map(describePath)
        expect(conflicts.sort()).toEqual(
          ownedPaths
            .filter((path) => !keptPaths.includes(path))
            .map((path) => `other: ${path}`)
            .sort(),
        )
      }),
    )
  })
})

describe('apply', () => {
  it("rejects a change to a field of another manager, with the field's path, unless it is forced", () => {
    const machine = ManagedObject.createAs('creator', { colour: 'red', parts: [{ name: 'arm', weight: 1 }] })
    const config = { colour: 'blue', parts: [{ name: 'arm', weight: 2 }] }
    expect(catchConflicts(() => machine.applyAs('me', config))).toEqual([
      'creator: .colour',
      'creator: .parts[name="arm"].weight',
    ])
    expect(machine.applyAs('me', config, { force: true }).owners).toEqual({
      'me Apply': { 'f:colour': {}, 'f:parts': { 'k:{"name":"arm"}': { '.': {}, 'f:name': {}, 'f:weight': {} } } },
      'creator Update': { 'f:parts': { '.': {}, 'k:{"name":"arm"}': { '.': {}, 'f:name': {} } } },
    })
  })

  it('shares a field with a manager that has set it to the same value', () => {
    const sharedMachine = emptyMachine.applyAs('a', { colour: 'red' }).applyAs('b', { colour: 'red' })
    expect(sharedMachine.owners).toEqual({ 'a Apply': { 'f:colour': {} }, 'b Apply': { 'f:colour': {} } })
    const releasedMachine = sharedMachine.applyAs('a', {})
    expect(releasedMachine.object.colour).toBe('red')
    expect(releasedMachine.applyAs('b', {}).object.colour).toBeUndefined()
  })

  it('removes fields that the configuration no longer sets, unless other managers set them', () => {
    const machine = emptyMachine
      .applyAs('me', { labels: { a: '1', b: '2' }, parts: [{ name: 'arm', weight: 1 }, { name: 'leg' }] })
      .applyAs('other', { parts: [{ name: 'leg', weight: 5 }] })
      .applyAs('me', { labels: { a: '1' } })
    expect(machine.object).toMatchObject({ labels: { a: '1' }, parts: [{ name: 'leg', weight: 5 }] })
  })

  it('keeps fields that an update added below a field that the configuration no longer sets', () => {
    const machine = emptyMachine.applyAs('me', { engine: { fuel: 'oil' } })
    const updatedMachine = machine.updateAs('other', { ...machine.object, engine: { fuel: 'oil', power: 3 } })
    expect(updatedMachine.applyAs('me', {}).object.engine).toEqual({ power: 3 })
  })

  /** Adds fields without an owner, as defaulting in the server does. */
  const withUnowned = ({ object, entries, steps }: ManagedObject, fields: Config) =>
    new ManagedObject({ ...object, ...fields }, entries, steps)

  it('removes a parent together with the fields that the server added to it', () => {
    const machine = withUnowned(emptyMachine.applyAs('me', { engine: { fuel: 'oil' } }), {
      engine: { fuel: 'oil', power: 3 },
    })
    expect(machine.applyAs('me', { colour: 'red' }).object).not.toHaveProperty('engine')
  })

  it('keeps fields that the server added to an object with fields of other managers', () => {
    const appliedMachine = emptyMachine.applyAs('me', { labels: { a: '1' } }).applyAs('other', { labels: { b: '2' } })
    const machine = withUnowned(appliedMachine, { labels: { a: '1', b: '2', added: '3' } })
    expect(machine.applyAs('me', {}).object.labels).toEqual({ b: '2', added: '3' })
  })

  it('orders the items of a set as the configuration does, and keeps the order of other items', () => {
    const machine = emptyMachine
      .applyAs('other', { tags: ['a', 'b', 'c', 'd'] })
      .applyAs('me', { tags: ['d', 'x', 'b'] })
    expect(machine.object.tags).toEqual(['a', 'c', 'd', 'x', 'b'])
  })

  it('replaces atomic values as a whole', () => {
    const machine = emptyMachine.applyAs('me', { settings: { a: '1' }, order: ['x'], joint: { from: 'p' } })
    const { object } = machine.applyAs('me', { settings: { b: '2' }, order: ['y'], joint: { to: 'q' } })
    expect(object).toMatchObject({ settings: { b: '2' }, order: ['y'], joint: { to: 'q' } })
    expect(object.settings).not.toHaveProperty('a')
    expect(object.joint).not.toHaveProperty('from')
  })

  it('makes the manager the owner of an empty map, although the object does not contain it', () => {
    const machine = emptyMachine.applyAs('me', { labels: {} })
    expect(machine.owners).toEqual({ 'me Apply': { 'f:labels': {} } })
    expect(machine.object.labels).toBeUndefined()
  })
})
