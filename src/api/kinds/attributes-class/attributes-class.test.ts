import { describe, expect, it } from 'vitest'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { volumeAttributesClassKind as kind } from './attributes-class.ts'

const aClass = (fields: object = {}) => ({
  metadata: { name: 'gold' },
  driverName: 'csi.example.com',
  parameters: { iops: '1000' },
  ...fields,
})
const manyParameters = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, '']))

describe('a volume attributes class', () => {
  it('VAC-1 is served as v1, v1beta1 and v1alpha1, with the short name vac', () => {
    expect(kind.versions).toEqual(['v1', 'v1beta1', 'v1alpha1'])
    expect(kind.shortNames).toEqual(['vac'])
  })

  it.each<[string, object]>([
    ['one parameter', {}],
    ['512 parameters with empty values', { parameters: manyParameters(512) }],
    ['256 KiB of parameters', { parameters: { k: 'x'.repeat(256 * 1024 - 1) } }],
  ])('VAC-1 accepts %s', (_case, fields) => {
    expect(tryCreate(kind, aClass(fields)).errors).toEqual([])
  })

  it.each<[string, object]>([
    ['driverName: Required value', { driverName: '' }],
    ['parameters: Required value: must contain at least one key/value pair', { parameters: undefined }],
    ['parameters: Required value: must contain at least one key/value pair', { parameters: {} }],
    ['parameters: Invalid value: "": field can not be empty.', { parameters: { '': 'x' } }],
    ['parameters: Too long: may not be more than 512 bytes', { parameters: manyParameters(513) }],
    ['parameters: Too long: may not be more than 262144 bytes', { parameters: { k: 'x'.repeat(256 * 1024) } }],
  ])('VAC-1 rejects: %s', (message, fields) => {
    expect(tryCreate(kind, aClass(fields)).errors).toEqual([message])
  })

  it.each<[string, (draft: Draft) => void]>([
    ['driverName: Forbidden: updates to driverName are forbidden.', (draft) => (draft.driverName = 'other')],
    ['parameters: Forbidden: updates to parameters are forbidden.', (draft) => (draft.parameters.iops = '2000')],
    ['parameters: Forbidden: updates to parameters are forbidden.', (draft) => (draft.parameters.more = '')],
    ['parameters: Forbidden: updates to parameters are forbidden.', (draft) => delete draft.parameters.tier],
  ])('VAC-1 cannot change: %s', (message, change) => {
    const storedClass = tryCreate(kind, aClass({ parameters: { iops: '1000', tier: 'hot' } })).object
    expect(tryUpdate(kind, storedClass, change).errors).toEqual([message])
  })

  it('VAC-1 rejects an invalid driver name', () => {
    const { errors } = tryCreate(kind, aClass({ driverName: 'no driver!' }))
    expect(errors).toEqual([
      expect.stringMatching(/^driverName: Invalid value: "no driver!": name part must consist of/),
    ])
  })

  it('VAC-1 accepts changes to its metadata', () => {
    const { errors } = tryUpdate(kind, tryCreate(kind, aClass()).object, (draft) => {
      draft.metadata.finalizers = ['kubernetes.io/vac-protection']
    })
    expect(errors).toEqual([])
  })

  it('has a table row with its driver', () => {
    expect(kind.columns.map(({ name }) => name)).toEqual(['Name', 'DriverName', 'Age'])
    const { object } = tryCreate(kind, aClass())
    expect(kind.columns.map((column) => column.cell(object, { nowMs: 0 }))).toEqual([
      'gold',
      'csi.example.com',
      '<unknown>',
    ])
  })
})
