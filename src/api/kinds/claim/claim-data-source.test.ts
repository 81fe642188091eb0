import { describe, expect, it } from 'vitest'
import { tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'

const aClaim = (spec: object) => ({
  metadata: { name: 'copy', namespace: 'shop' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } }, ...spec },
})
const create = (spec: object) => tryCreate(kind, aClaim(spec))

const fromClaim = { kind: 'PersistentVolumeClaim', name: 'original' }
const fromSnapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' }
const fromElsewhere = { apiGroup: 'example.com', kind: 'Backup', name: 'b1' }

describe('the data source of a claim', () => {
  it.each([
    ['a claim', fromClaim],
    ['a snapshot', fromSnapshot],
  ])('%s in either field is copied to the other', (_what, source) => {
    for (const field of ['dataSource', 'dataSourceRef']) {
      const { object, errors } = create({ [field]: source })
      expect(errors).toEqual([])
      expect(object.spec?.dataSource).toEqual(source)
      expect(object.spec?.dataSourceRef).toEqual(source)
    }
  })

  it('any other source is dropped from dataSource without dataSourceRef', () => {
    expect(create({ dataSource: fromElsewhere }).object.spec).not.toHaveProperty('dataSource')
    expect(create({ dataSource: fromElsewhere }).object.spec).not.toHaveProperty('dataSourceRef')
    expect(create({ dataSourceRef: fromElsewhere }).object.spec?.dataSource).toEqual(fromElsewhere)
  })

  it('a source in another namespace is dropped', () => {
    const { object } = create({ dataSourceRef: { ...fromSnapshot, namespace: 'other' } })
    expect(object.spec).not.toHaveProperty('dataSourceRef')
    expect(object.spec).not.toHaveProperty('dataSource')
  })

  it.each([
    ['spec.dataSourceRef.name: Required value', { dataSourceRef: { ...fromSnapshot, name: '' } }],
    ['spec.dataSourceRef.kind: Required value', { dataSourceRef: { ...fromSnapshot, kind: '' } }],
    [
      `spec.dataSourceRef: Invalid value: "Backup": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
      { dataSourceRef: { kind: 'Backup', name: 'b1' } },
    ],
    [
      'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
      { dataSource: fromClaim, dataSourceRef: fromSnapshot },
    ],
  ])('rejects: %s', (message, spec) => {
    expect(create(spec).errors).toContain(message)
  })

  it('rejects an API group that is not a DNS subdomain', () => {
    const { errors } = create({ dataSourceRef: { ...fromElsewhere, apiGroup: 'Ex ample' } })
    expect(
      errors.filter((error) => error.startsWith('spec.dataSourceRef.apiGroup: Invalid value: "Ex ample"')),
    ).toHaveLength(1)
  })

  it.each([
    ['a snapshot', fromSnapshot],
    ['anything else', fromElsewhere],
  ])('an update by a client that sends only dataSource does not change %s', (_what, source) => {
    const stored = create({ dataSourceRef: source }).object
    const { object, errors } = tryUpdate(kind, stored, (draft) => delete draft.spec.dataSourceRef)
    expect(errors).toEqual([])
    expect(object).toEqual(stored)
  })

  it('a source in another namespace is kept if the stored claim has it', () => {
    const stored = create({}).object
    stored.spec!.dataSourceRef = { ...fromSnapshot, namespace: 'other' }
    const { object, errors } = tryUpdate(kind, stored, (draft) => (draft.metadata.labels = { a: 'b' }))
    expect(errors).toEqual([])
    expect(object.spec).toEqual(stored.spec)
  })

  it('a source in another namespace excludes dataSource', () => {
    const stored = create({}).object
    stored.spec!.dataSourceRef = { ...fromSnapshot, namespace: 'Other' }
    const { errors } = tryUpdate(kind, stored, (draft) => (draft.spec.dataSource = fromSnapshot))
    expect(errors[0]).toMatch(/^spec\.dataSourceRef\.namespace: Invalid value: "Other"/)
    expect(errors[1]).toBe(
      'spec: Invalid value: "spec.dataSource": may not be specified when dataSourceRef.namespace is specified',
    )
  })

  it('a claim stored with only one of the fields can still be updated', () => {
    const stored = create({ dataSource: fromSnapshot }).object
    delete stored.spec!.dataSourceRef
    expect(tryUpdate(kind, stored, (draft) => (draft.metadata.labels = { a: 'b' })).errors).toEqual([])
  })

  it('the source is immutable', () => {
    const stored = create({ dataSource: fromSnapshot }).object
    const { errors } = tryUpdate(kind, stored, (draft) => {
      draft.spec.dataSource.name = 'tuesday'
      delete draft.spec.dataSourceRef
    })
    expect(errors[0]).toMatch(/^spec: Forbidden: spec is immutable after creation/)
  })
})
