import { describe, expect, it } from 'vitest'
import { tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { controllerRevisionKind as kind } from './controller-revision.ts'

const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u', controller: true }
const body = { metadata: { name: 'web-1', ownerReferences: [owner] }, data: { spec: {} }, revision: 1 }

describe('a controller revision', () => {
  it.each<[string, object]>([
    ['revision: Invalid value: -1: must be greater than or equal to 0', { revision: -1 }],
    ['data: Required value: data is mandatory', { data: undefined }],
    ['data: Required value: data must be a valid JSON object', { data: ['x'] }],
  ])('is rejected with %s', (message, fields) => {
    expect(tryCreate(kind, { ...body, ...fields }).errors).toEqual([message])
  })

  it('can change its number, but not its data', () => {
    const { object } = tryCreate(kind, body)
    expect(tryUpdate(kind, object, (draft) => (draft.revision = 7)).errors).toEqual([])
    expect(tryUpdate(kind, object, (draft) => (draft.data = { spec: { x: 1 } })).errors).toEqual([
      'data: Invalid value: {"spec":{"x":1}}: field is immutable',
    ])
  })

  it('has a table row with its controller', () => {
    const cellsOf = (object: Parameters<(typeof kind.columns)[0]['cell']>[0]) =>
      kind.columns.map((column) => column.cell(object, { nowMs: 0 }))
    const { object } = tryCreate(kind, body)
    expect(cellsOf(object)).toEqual(['web-1', 'statefulset.apps/web', 1, '<unknown>'])
    expect(cellsOf({ ...object, metadata: { name: 'web-1' } })[1]).toBe('<none>')
  })
})
