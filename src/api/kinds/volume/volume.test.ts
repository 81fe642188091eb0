import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { tryCreate, tryStatus } from '../try-write.fixture.ts'
import { persistentVolumeKind as kind } from './volume.ts'
import type { PersistentVolume } from './volume-schema.ts'

const csi = { driver: 'csi.example.com', volumeHandle: 'v1' }
const aVolume = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'pv-1', ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' }, csi, ...spec },
})
const affinityOf = (terms: object[]) => ({ nodeAffinity: { required: { nodeSelectorTerms: terms } } })
const hostnameAffinity = affinityOf([
  { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] },
])

describe('creating a volume', () => {
  it('applies defaults and sets the phase Pending with the current time', () => {
    const body = { ...aVolume(), status: { phase: 'Bound' } }
    const { object, errors, warnings } = tryCreate(kind, body, { now: '2026-05-06T07:08:09.900Z' })
    expect(errors).toEqual([])
    expect(warnings).toEqual([])
    expect(object.spec).toMatchObject({ persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' })
    expect(object.status).toEqual({ phase: 'Pending', lastPhaseTransitionTime: '2026-05-06T07:08:09Z' })
  })

  it.each([
    ['spec.accessModes: Required value', { accessModes: [] }],
    [
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      { accessModes: ['ReadWriteOnce', 'ReadWriteOncePod'] },
    ],
    ['spec.capacity[storage]: Invalid value: "0": must be greater than zero', { capacity: { storage: '0' } }],
    [
      'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", "Recycle", "Retain"',
      { persistentVolumeReclaimPolicy: 'Keep' },
    ],
    [
      "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
      { csi: undefined, hostPath: { path: '/tmp/..//' }, persistentVolumeReclaimPolicy: 'Recycle' },
    ],
    ['spec.volumeMode: Unsupported value: "Raw": supported values: "Block", "Filesystem"', { volumeMode: 'Raw' }],
    ['spec: Required value: must specify a volume type', { csi: undefined }],
    ['spec.csi: Forbidden: may not specify more than 1 volume type', { hostPath: { path: '/data' } }],
    ['spec.nodeAffinity.required: Required value: must specify required node constraints', { nodeAffinity: {} }],
    [
      'spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term',
      affinityOf([]),
    ],
    [
      'spec.nodeAffinity: Required value: Local volume requires node affinity',
      { csi: undefined, local: { path: '/mnt/disk' } },
    ],
    [
      'spec.volumeAttributesClassName: Required value: an empty string is disallowed',
      { volumeAttributesClassName: '' },
    ],
    [
      'spec.csi: Required value: has to be specified when using volumeAttributesClassName',
      { csi: undefined, nfs: { server: 'nas', path: '/' }, volumeAttributesClassName: 'gold' },
    ],
  ])('rejects: %s', (message, spec) => {
    const { errors } = tryCreate(kind, aVolume(spec))
    expect(errors.filter((error) => !error.includes("must not contain '..'"))).toEqual([message])
  })

  it('rejects a volume without capacity', () => {
    expect(tryCreate(kind, aVolume({ capacity: undefined })).errors).toEqual([
      'spec.capacity: Required value',
      'spec.capacity: Unsupported value: null: supported values: "storage", "iops", "throughput"',
    ])
  })

  it('rejects an invalid class name', () => {
    expect(tryCreate(kind, aVolume({ storageClassName: 'Fast!' })).errors[0]).toMatch(
      /^spec\.storageClassName: Invalid value: "Fast!": a lowercase RFC 1123 subdomain/,
    )
  })

  it('accepts a local volume with node affinity', () => {
    expect(
      tryCreate(kind, aVolume({ csi: undefined, local: { path: '/mnt/disk' }, ...hostnameAffinity })).errors,
    ).toEqual([])
  })

  it('drops the attributes class without an error while the feature gate is disabled', () => {
    const gates = 'VolumeAttributesClass=false'
    const { object, errors } = tryCreate(kind, aVolume({ volumeAttributesClassName: '' }), { gates })
    expect(errors).toEqual([])
    expect(object.spec).not.toHaveProperty('volumeAttributesClassName')
  })

  it('rejects the mount options annotation for sources that do not support it', () => {
    const annotations = { 'volume.beta.kubernetes.io/mount-options': 'ro' }
    expect(tryCreate(kind, aVolume({}, { annotations })).errors).toEqual([
      'metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume type',
    ])
    const nfs = { csi: undefined, nfs: { server: 'nas', path: '/' } }
    expect(tryCreate(kind, aVolume(nfs, { annotations })).errors).toEqual([])
  })

  it('warns about deprecated fields', () => {
    const annotations = {
      'volume.beta.kubernetes.io/storage-class': 'fast',
      'volume.beta.kubernetes.io/mount-options': 'ro',
    }
    const spec = {
      csi: undefined,
      rbd: { monitors: ['m'], image: 'i' },
      persistentVolumeReclaimPolicy: 'Recycle',
      ...affinityOf([{ matchExpressions: [{ key: 'beta.kubernetes.io/os', operator: 'Exists' }] }]),
    }
    expect(tryCreate(kind, aVolume(spec, { annotations })).warnings).toEqual([
      'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
      'metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead',
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
      'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.rbd: deprecated in v1.28, non-functional in v1.31+',
    ])
  })
})

describe("a volume's status", () => {
  const CREATED_AT = '2026-01-01T00:00:00Z'
  const UPDATED_AT = '2026-02-02T00:00:00Z'
  const storedVolume = tryCreate(kind, aVolume(), { now: CREATED_AT }).object
  const setStatus = (status: object) =>
    tryStatus(kind, storedVolume, (draft) => (draft.status = status), { now: UPDATED_AT }).object.status

  it.each([
    ['is set when the phase changes', { phase: 'Available' }, UPDATED_AT],
    [
      'is set when the request contains the old time',
      { phase: 'Available', lastPhaseTransitionTime: CREATED_AT },
      UPDATED_AT,
    ],
    [
      'is accepted from a client',
      { phase: 'Available', lastPhaseTransitionTime: '2026-01-15T00:00:00Z' },
      '2026-01-15T00:00:00Z',
    ],
    ['is kept while the phase is the same', { phase: 'Pending', message: 'waiting' }, CREATED_AT],
    [
      'can be changed without changing the phase',
      { phase: 'Pending', lastPhaseTransitionTime: UPDATED_AT },
      UPDATED_AT,
    ],
  ])('lastPhaseTransitionTime %s', (_case, status, time) => {
    expect(setStatus(status)).toEqual({ ...status, lastPhaseTransitionTime: time })
  })
})

describe('the volume table', () => {
  const cellsOf = (volume: PersistentVolume) =>
    kind.columns.map((column) => cellOf(column, volume, { nowMs: Date.parse('2026-01-01T01:00:00Z') }))

  it('has the Kubernetes columns', () => {
    expect(kind.columns.map(({ name, wide }) => (wide ? `${name}*` : name))).toEqual([
      'Name',
      'Capacity',
      'Access Modes',
      'Reclaim Policy',
      'Status',
      'Claim',
      'StorageClass',
      'VolumeAttributesClass',
      'Reason',
      'Age',
      'VolumeMode*',
    ])
  })

  it('shows a bound volume, and the status Terminating while it is being deleted', () => {
    const volume: PersistentVolume = {
      metadata: { name: 'pv-1', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteMany'],
        persistentVolumeReclaimPolicy: 'Delete',
        claimRef: { namespace: 'shop', name: 'data' },
        storageClassName: 'fast',
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Bound', reason: 'ReclaimFailed' },
    }
    expect(cellsOf(volume)).toEqual([
      'pv-1',
      '10Gi',
      'RWX',
      'Delete',
      'Bound',
      'shop/data',
      'fast',
      '<unset>',
      'ReclaimFailed',
      '60m',
      'Filesystem',
    ])
    expect(cellsOf({ ...volume, metadata: { name: 'pv-1', deletionTimestamp: '2026-01-01T00:00:00Z' } })[4]).toBe(
      'Terminating',
    )
  })

  it('shows a volume without any fields', () => {
    expect(cellsOf({ metadata: {} })).toEqual(['', '0', '', '', '', '', '', '<unset>', '', '<unknown>', '<unset>'])
  })
})
