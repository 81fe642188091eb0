import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { csiStorageCapacityKind as kind } from './csi-storage-capacity.ts'

const aCapacity = (fields: object = {}) => ({
  metadata: { name: 'csisc-1', namespace: 'kube-system' },
  storageClassName: 'fast',
  ...fields,
})
const zoneTopology = { matchLabels: { zone: 'a' } }

describe('CSIStorageCapacity', () => {
  it('CAP-1 is namespaced and distinguishes an unset topology (no node) from an empty one (all nodes)', () => {
    expect(kind.namespaced).toBe(true)
    expect(tryCreate(kind, aCapacity()).object).not.toHaveProperty('nodeTopology')
    expect(tryCreate(kind, aCapacity({ nodeTopology: {} })).object.nodeTopology).toEqual({})
  })

  it('CAP-1 stores capacity and maximum volume size in canonical form', () => {
    const { object, errors } = tryCreate(kind, aCapacity({ capacity: '0.5Gi', maximumVolumeSize: 1000 }))
    expect(errors).toEqual([])
    expect(object).toMatchObject({ capacity: '512Mi', maximumVolumeSize: '1k' })
  })

  it('CAP-1 accepts a capacity of zero and a negative maximum volume size', () => {
    expect(tryCreate(kind, aCapacity({ capacity: '0', maximumVolumeSize: '-1' })).errors).toEqual([])
  })

  it.each<[string | RegExp, object]>([
    [/^storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain/, { storageClassName: '' }],
    [/^storageClassName: Invalid value: "A B"/, { storageClassName: 'A B' }],
    [/^capacity: Invalid value: "-1": must be greater than or equal to 0$/, { capacity: '-1' }],
    [
      /^nodeTopology\.matchExpressions\[0\]\.values: Required value: must be specified/,
      { nodeTopology: { matchExpressions: [{ key: 'zone', operator: 'In' }] } },
    ],
  ])('CAP-1 rejects: %s', (message, fields) => {
    expect(tryCreate(kind, aCapacity(fields)).errors).toEqual([expect.stringMatching(message)])
  })

  it('rejects the invalid name with which provisioners probe the API', () => {
    expect(kind.nameErrors('#%123-invalid-name')).toHaveLength(1)
  })

  it.each<[string, object, (draft: Draft) => void]>([
    [
      'nodeTopology: Invalid value: {"matchLabels":{"zone":"b"}}: field is immutable',
      { nodeTopology: zoneTopology },
      (draft) => (draft.nodeTopology.matchLabels.zone = 'b'),
    ],
    ['nodeTopology: Invalid value: {}: field is immutable', {}, (draft) => (draft.nodeTopology = {})],
    [
      'nodeTopology: Invalid value: null: field is immutable',
      { nodeTopology: {} },
      (draft) => delete draft.nodeTopology,
    ],
    ['storageClassName: Invalid value: "slow": field is immutable', {}, (draft) => (draft.storageClassName = 'slow')],
  ])('CAP-1 rejects a change: %s', (message, fields, change) => {
    expect(tryUpdate(kind, tryCreate(kind, aCapacity(fields)).object, change).errors).toEqual([message])
  })

  it('CAP-1 accepts changes to its sizes, and requires a resourceVersion for updates', () => {
    const storedCapacity = tryCreate(kind, aCapacity({ nodeTopology: zoneTopology, capacity: '1Gi' })).object
    const { errors } = tryUpdate(kind, storedCapacity, (draft) => {
      draft.capacity = '2Gi'
      draft.maximumVolumeSize = '1Gi'
    })
    expect(errors).toEqual([])
    expect(kind.allowsUnconditionalUpdate).toBe(false)
  })

  it('warns about deprecated labels', () => {
    const nodeTopology = {
      matchLabels: { 'beta.kubernetes.io/arch': 'amd64' },
      matchExpressions: [{ key: 'beta.kubernetes.io/os', operator: 'Exists' }],
    }
    expect(tryCreate(kind, aCapacity({ nodeTopology })).warnings).toEqual([
      'nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
      'nodeTopology.matchLabels.beta.kubernetes.io/arch: deprecated since v1.14; use "kubernetes.io/arch" instead',
    ])
  })

  it('has a table row with class and capacity', () => {
    expect(kind.columns.map(({ name }) => name)).toEqual(['Name', 'StorageClassName', 'Capacity'])
    const cells = (fields: object) =>
      kind.columns.map((column) => cellOf(column, tryCreate(kind, aCapacity(fields)).object, { nowMs: 0 }))
    expect(cells({})).toEqual(['csisc-1', 'fast', '<unset>'])
    expect(cells({ capacity: '1Gi' })).toEqual(['csisc-1', 'fast', '1Gi'])
  })
})
