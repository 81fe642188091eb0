import { describe, expect, it } from 'vitest'
import { tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'

const aClaim = (spec: object) => ({
  metadata: { name: 'copy', namespace: 'shop' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } }, ...spec },
})
const create = (spec: object) => tryCreate(kind, aClaim(spec))

const claimSource = { kind: 'PersistentVolumeClaim', name: 'original' }
const snapshotSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' }
const backupSource = { apiGroup: 'example.com', kind: 'Backup', name: 'b1' }

describe("a claim's data source", () => {
  it.each([
    ['a claim', claimSource],
    ['a snapshot', snapshotSource],
  ])('is copied to the other field if it is %s', (_case, source) => {
    for (const field of ['dataSource', 'dataSourceRef']) {
      const { object, errors } = create({ [field]: source })
      expect(errors).toEqual([])
      expect(object.spec?.dataSource).toEqual(source)
      expect(object.spec?.dataSourceRef).toEqual(source)
    }
  })

  it('of another kind is dropped from dataSource without dataSourceRef, and copied from dataSourceRef to dataSource', () => {
    expect(create({ dataSource: backupSource }).object.spec).not.toHaveProperty('dataSource')
    expect(create({ dataSource: backupSource }).object.spec).not.toHaveProperty('dataSourceRef')
    expect(create({ dataSourceRef: backupSource }).object.spec?.dataSource).toEqual(backupSource)
  })

  it('is dropped if it is in another namespace', () => {
    const { object } = create({ dataSourceRef: { ...snapshotSource, namespace: 'other' } })
    expect(object.spec).not.toHaveProperty('dataSourceRef')
    expect(object.spec).not.toHaveProperty('dataSource')
  })

  it.each([
    ['spec.dataSourceRef.name: Required value', { dataSourceRef: { ...snapshotSource, name: '' } }],
    ['spec.dataSourceRef.kind: Required value', { dataSourceRef: { ...snapshotSource, kind: '' } }],
    [
      `spec.dataSourceRef: Invalid value: "Backup": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
      { dataSourceRef: { kind: 'Backup', name: 'b1' } },
    ],
    [
      'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
      { dataSource: claimSource, dataSourceRef: snapshotSource },
    ],
  ])('is rejected: %s', (message, spec) => {
    expect(create(spec).errors).toContain(message)
  })

  it('is rejected if its API group is not a DNS subdomain', () => {
    const { errors } = create({ dataSourceRef: { ...backupSource, apiGroup: 'Ex ample' } })
    expect(
      errors.filter((error) => error.startsWith('spec.dataSourceRef.apiGroup: Invalid value: "Ex ample"')),
    ).toHaveLength(1)
  })

  it.each([
    ['a snapshot', snapshotSource],
    ['an object of another kind', backupSource],
  ])('is not changed by an update without dataSourceRef if it is %s', (_case, source) => {
    const storedClaim = create({ dataSourceRef: source }).object
    const { object, errors } = tryUpdate(kind, storedClaim, (draft) => delete draft.spec.dataSourceRef)
    expect(errors).toEqual([])
    expect(object).toEqual(storedClaim)
  })

  it('is kept if the stored claim already refers to another namespace', () => {
    const storedClaim = create({}).object
    storedClaim.spec!.dataSourceRef = { ...snapshotSource, namespace: 'other' }
    const { object, errors } = tryUpdate(kind, storedClaim, (draft) => (draft.metadata.labels = { a: 'b' }))
    expect(errors).toEqual([])
    expect(object.spec).toEqual(storedClaim.spec)
  })

  it('cannot be set in dataSource if dataSourceRef has a namespace', () => {
    const storedClaim = create({}).object
    storedClaim.spec!.dataSourceRef = { ...snapshotSource, namespace: 'Other' }
    const { errors } = tryUpdate(kind, storedClaim, (draft) => (draft.spec.dataSource = snapshotSource))
    expect(errors[0]).toMatch(/^spec\.dataSourceRef\.namespace: Invalid value: "Other"/)
    expect(errors[1]).toBe(
      'spec: Invalid value: "spec.dataSource": may not be specified when dataSourceRef.namespace is specified',
    )
  })

  it('may be set in only one field of a stored claim', () => {
    const storedClaim = create({ dataSource: snapshotSource }).object
    delete storedClaim.spec!.dataSourceRef
    expect(tryUpdate(kind, storedClaim, (draft) => (draft.metadata.labels = { a: 'b' })).errors).toEqual([])
  })

  it('is immutable', () => {
    const storedClaim = create({ dataSource: snapshotSource }).object
    const { errors } = tryUpdate(kind, storedClaim, (draft) => {
      draft.spec.dataSource.name = 'tuesday'
      delete draft.spec.dataSourceRef
    })
    expect(errors[0]).toMatch(/^spec: Forbidden: spec is immutable after creation/)
  })
})
