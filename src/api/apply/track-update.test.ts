import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, nothing, Owned } from './apply.fixture.ts'
import { intersection } from './field-set.ts'

describe('owners of an object that is updated', () => {
  it('the creator owns everything but what names the object', () => {
    const metadata = { name: 'm', uid: 'u', labels: { a: '1' } }
    expect(Owned.createdBy('me', { metadata, colour: 'red' }).owners).toEqual({
      'me Update': { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } }, 'f:colour': {} },
    })
  })

  it('who changes a field takes it from all others', () => {
    const machine = Owned.createdBy('me', { colour: 'red', size: 1 }).applyAs('applier', { colour: 'red' })
    expect(machine.updateAs('other', { colour: 'blue', size: 1 }).owners).toEqual({
      'me Update': { 'f:size': {} },
      'other Update': { 'f:colour': {} },
    })
  })

  it('a field that goes belongs to nobody', () => {
    const machine = Owned.createdBy('me', { colour: 'red', size: 1 })
    expect(machine.updateAs('other', { size: 1 }).owners).toEqual({ 'me Update': { 'f:size': {} } })
    expect(machine.updateAs('other', {}).owners).toEqual({})
  })

  it('an update that changes nothing leaves the record as it is, times included', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const machine = Owned.createdBy('me', config)
        expect(machine.updateAs('other', machine.object).entries).toBe(machine.entries)
      }),
    )
  })

  it('no field has two owners as long as nobody applies', () => {
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

  it('the same client has an entry for each subresource', () => {
    const { entries } = Owned.createdBy('me', { size: 1 }).updateAs('me', { size: 2 }, 'status')
    expect(entries.map(({ manager, subresource }) => [manager, subresource])).toEqual([['me', 'status']])
  })

  it('an object without a record gets none by an update', () => {
    expect(nothing.updateAs('me', { size: 1 }).entries).toEqual([])
  })

  it('remembers ten updaters; the oldest of more are one without a name', () => {
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
