import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { storageClassKind as kind } from './storage-class.ts'
import type { StorageClass } from './storage-class-schema.ts'

const aClass = (fields: object = {}) => ({ metadata: { name: 'fast' }, provisioner: 'csi.example.com', ...fields })
const term = (...requirements: [string, string[]][]) => ({
  matchLabelExpressions: requirements.map(([key, values]) => ({ key, values })),
})

describe('creating a storage class', () => {
  it('PROV-1 is possible in v1 and v1beta1', () => {
    expect(kind.versions).toEqual(['v1', 'v1beta1'])
  })

  it('PROV-1 defaults reclaimPolicy to Delete and volumeBindingMode to Immediate', () => {
    const { object, errors } = tryCreate(kind, aClass())
    expect(errors).toEqual([])
    expect(object).toMatchObject({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
    expect(object).not.toHaveProperty('allowVolumeExpansion')
  })

  it('PROV-1 keeps all fields', () => {
    const body = aClass({
      parameters: { type: 'ssd', empty: '' },
      reclaimPolicy: 'Retain',
      mountOptions: ['noatime', 'anything at all'],
      allowVolumeExpansion: false,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [term(['zone', ['a', 'b']])],
    })
    const { object, errors } = tryCreate(kind, body)
    expect(errors).toEqual([])
    expect(object).toEqual(body)
  })

  it.each<[string, object]>([
    ['provisioner: Required value', { provisioner: '' }],
    ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"', { reclaimPolicy: 'Recycle' }],
    [
      'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
      { volumeBindingMode: 'Later' },
    ],
    ['parameters: Invalid value: "": field can not be empty.', { parameters: { '': 'x' } }],
    [
      'parameters: Too long: may not be more than 512 bytes',
      { parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, ''])) },
    ],
    ['parameters: Too long: may not be more than 262144 bytes', { parameters: { k: 'ä'.repeat(131_072) } }],
    [
      'allowedTopologies[0].matchLabelExpressions[0].values: Required value',
      { allowedTopologies: [term(['zone', []])] },
    ],
    [
      'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
      { allowedTopologies: [term(['zone', ['a', 'a']])] },
    ],
    [
      'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
      { allowedTopologies: [term(['zone', ['a']], ['zone', ['b']])] },
    ],
    [
      'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
      { allowedTopologies: [term(['zone', ['a', 'b']], ['rack', ['1']]), term(['rack', ['1']], ['zone', ['b', 'a']])] },
    ],
    ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""', { allowedTopologies: [{}] }],
  ])('PROV-1 rejects: %s', (message, fields) => {
    expect(tryCreate(kind, aClass(fields)).errors).toEqual([message])
  })

  it('PROV-1 rejects a provisioner whose lower-case form is not a qualified name', () => {
    expect(tryCreate(kind, aClass({ provisioner: 'Example.com/NFS' })).errors).toEqual([])
    expect(tryCreate(kind, aClass({ provisioner: 'Not OK' })).errors[0]).toMatch(
      /^provisioner: Invalid value: "not ok": name part must consist of alphanumeric characters/,
    )
  })

  it('PROV-1 rejects a topology key that is not a label key', () => {
    expect(tryCreate(kind, aClass({ allowedTopologies: [term(['a b', ['x']])] })).errors[0]).toMatch(
      /^allowedTopologies\[0\]\.matchLabelExpressions\[0\]\.key: Invalid value: "a b"/,
    )
  })

  it('accepts parameters up to the limits', () => {
    const parameters = Object.fromEntries(
      Array.from({ length: 512 }, (_, i) => [`${i}`.padStart(4, '0'), 'x'.repeat(508)]),
    )
    expect(tryCreate(kind, aClass({ parameters })).errors).toEqual([])
  })

  it('warns about deprecated labels', () => {
    const allowedTopologies = [term(['failure-domain.beta.kubernetes.io/zone', ['a']])]
    expect(tryCreate(kind, aClass({ allowedTopologies })).warnings).toEqual([
      'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    ])
  })
})

describe('updating a storage class', () => {
  const storedClass = tryCreate(kind, aClass({ parameters: { type: 'ssd' } })).object

  it.each<[string, (draft: Draft) => void]>([
    ['parameters: Invalid value: {"type":"hdd"}: field is immutable', (draft) => (draft.parameters = { type: 'hdd' })],
    ['parameters: Invalid value: null: field is immutable', (draft) => delete draft.parameters],
    ['provisioner: Invalid value: "other": field is immutable', (draft) => (draft.provisioner = 'other')],
    ['reclaimPolicy: Invalid value: "Retain": field is immutable', (draft) => (draft.reclaimPolicy = 'Retain')],
    [
      'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
      (draft) => (draft.volumeBindingMode = 'WaitForFirstConsumer'),
    ],
  ])('PROV-1 rejects: %s', (message, change) => {
    expect(tryUpdate(kind, storedClass, change).errors).toEqual([message])
  })

  it('PROV-1 accepts changes to expansion, mount options, topologies and metadata', () => {
    const { errors } = tryUpdate(kind, storedClass, (draft) => {
      draft.allowVolumeExpansion = true
      draft.mountOptions = ['ro']
      draft.allowedTopologies = [term(['zone', ['a']])]
      draft.metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    })
    expect(errors).toEqual([])
  })
})

describe('the table of storage classes', () => {
  const aDefaultClass = (name: string, creationTimestamp: string): StorageClass => ({
    metadata: { name, creationTimestamp, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'p',
  })
  const olderClass = aDefaultClass('older', '2026-01-01T00:00:00Z')
  const newerClass = aDefaultClass('newer', '2026-01-02T00:00:00Z')
  const sameAgeClass = aDefaultClass('a-twin', '2026-01-02T00:00:00Z')
  const otherClass: StorageClass = { metadata: { name: 'plain' }, provisioner: 'p', allowVolumeExpansion: true }
  const formatNames = (siblings: StorageClass[]) =>
    siblings.map((row) => cellOf(kind.columns[0]!, row, { nowMs: 0, siblings }))

  it('marks the newest default class in lists, or the first by name of several that are equally new', () => {
    expect(formatNames([olderClass, newerClass, otherClass])).toEqual(['older', 'newer (default)', 'plain'])
    expect(formatNames([newerClass, sameAgeClass, olderClass])).toEqual(['newer', 'a-twin (default)', 'older'])
    expect(formatNames([otherClass])).toEqual(['plain'])
  })

  it('does not mark a class outside of a list', () => {
    expect(cellOf(kind.columns[0]!, newerClass, { nowMs: 0 })).toBe('newer')
  })

  it('recognizes the beta annotation', () => {
    const annotations = { 'storageclass.beta.kubernetes.io/is-default-class': 'true' }
    expect(formatNames([{ ...otherClass, metadata: { name: 'plain', annotations } }])).toEqual(['plain (default)'])
  })

  it('has the Kubernetes columns', () => {
    expect(kind.columns.map(({ name }) => name)).toEqual([
      'Name',
      'Provisioner',
      'ReclaimPolicy',
      'VolumeBindingMode',
      'AllowVolumeExpansion',
      'Age',
    ])
    expect(kind.columns.slice(1).map((column) => cellOf(column, otherClass, { nowMs: 0 }))).toEqual([
      'p',
      'Delete',
      'Immediate',
      true,
      '<unknown>',
    ])
  })
})
