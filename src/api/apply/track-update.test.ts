import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, nothing, Owned } from './apply.fixture.ts'
import { intersection } from './field-set.ts'

describe('managedFields after an update', () => {
  it('the creator owns all fields except those that identify the object', () => {
    const metadata = { name: 'm', uid: 'u', labels: { a: '1' } }
    expect(Owned.createdBy('me', { metadata, colour: 'red' }).owners).toEqual({
      'me Update': { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } }, 'f:colour': {} },
    })
  })

  it('a manager that changes a field becomes its only owner', () => {
    const machine = Owned.createdBy('me', { colour: 'red', size: 1 }).applyAs('applier', { colour: 'red' })
    expect(machine.updateAs('other', { colour: 'blue', size: 1 }).owners).toEqual({
      'me Update': { 'f:size': {} },
      'other Update': { 'f:colour': {} },
    })
  })

  it('a removed field has no owner', () => {
    const machine = Owned.createdBy('me', { colour: 'red', size: 1 })
    expect(machine.updateAs('other', { size: 1 }).owners).toEqual({ 'me Update': { 'f:size': {} } })
    expect(machine.updateAs('other', {}).owners).toEqual({})
  })

  it('an update that changes nothing keeps the entries, including their times', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const machine = Owned.createdBy('me', config)
        expect(machine.updateAs('other', machine.object).entries).toBe(machine.entries)
      }),
    )
  })

  it('no field has two owners without an apply', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, anyConfig, (a, b, c) => {
        const { entries } = Owned.createdBy('a', a).updateAs('b', b).updateAs('c', c)
        for (const one of entries) {
          for (const other of entries) {
            if (one !== other) expect(intersection(one.fieldsV1, other.fieldsV1)).toEqual({})
          }
        }
      }),
    )
  })

  it('a client has one entry per subresource', () => {
    const { entries } = Owned.createdBy('me', { size: 1 }).updateAs('me', { size: 2 }, 'status')
    expect(entries.map(({ manager, subresource }) => [manager, subresource])).toEqual([['me', 'status']])
  })

  it('an object without managedFields gets none by an update', () => {
    expect(nothing.updateAs('me', { size: 1 }).entries).toEqual([])
  })

  it('keeps ten updaters and merges older ones into one entry', () => {
    let machine = Owned.createdBy('u00', { colour: 'red' })
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
