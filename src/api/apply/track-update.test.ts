import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, emptyMachine, ManagedObject } from './apply.fixture.ts'
import { intersection } from './field-set.ts'

describe('managedFields after a create or update', () => {
  it('the creator owns all fields except those that identify the object', () => {
    const metadata = { name: 'm', uid: 'u', labels: { a: '1' } }
    expect(ManagedObject.createAs('me', { metadata, colour: 'red' }).owners).toEqual({
      'me Update': { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } }, 'f:colour': {} },
    })
  })

  it('a manager that changes a field becomes its only owner', () => {
    const machine = ManagedObject.createAs('me', { colour: 'red', size: 1 }).applyAs('applier', { colour: 'red' })
    expect(machine.updateAs('other', { colour: 'blue', size: 1 }).owners).toEqual({
      'me Update': { 'f:size': {} },
      'other Update': { 'f:colour': {} },
    })
  })

  it('a removed field has no owner', () => {
    const machine = ManagedObject.createAs('me', { colour: 'red', size: 1 })
    expect(machine.updateAs('other', { size: 1 }).owners).toEqual({ 'me Update': { 'f:size': {} } })
    expect(machine.updateAs('other', {}).owners).toEqual({})
  })

  it('an update without changes keeps the entries, including their times', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const machine = ManagedObject.createAs('me', config)
        expect(machine.updateAs('other', machine.object).entries).toBe(machine.entries)
      }),
    )
  })

  it('every field has at most one owner if there was no apply', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, anyConfig, (a, b, c) => {
        const { entries } = ManagedObject.createAs('a', a).updateAs('b', b).updateAs('c', c)
        for (const entry of entries) {
          for (const otherEntry of entries) {
            if (entry !== otherEntry) expect(intersection(entry.fieldsV1, otherEntry.fieldsV1)).toEqual({})
          }
        }
      }),
    )
  })

  it('an update of a subresource moves the changed fields to an entry of the subresource', () => {
    const { entries } = ManagedObject.createAs('me', { size: 1 }).updateAs('me', { size: 2 }, 'status')
    expect(entries.map(({ manager, subresource }) => [manager, subresource])).toEqual([['me', 'status']])
  })

  it('an update adds no managedFields to an object without them', () => {
    expect(emptyMachine.updateAs('me', { size: 1 }).entries).toEqual([])
  })

  it('the entries of the oldest updaters are merged if there are more than ten', () => {
    let machine = ManagedObject.createAs('u00', { colour: 'red' })
    for (let n = 1; n <= 12; n++) {
      const labels = { ...machine.object.labels, [`l${n}`]: 'x' }
      machine = machine.updateAs(`u${String(n).padStart(2, '0')}`, { ...machine.object, labels })
    }
    const managers = machine.entries.map(({ manager }) => manager)
    expect(managers).toEqual(['ancient-changes', 'u04', 'u05', 'u06', 'u07', 'u08', 'u09', 'u10', 'u11', 'u12'])
    expect(machine.owners['ancient-changes Update']).toEqual({
      'f:colour': {},
      'f:labels': { '.': {}, 'f:l1': {}, 'f:l2': {}, 'f:l3': {} },
    })
  })
})
