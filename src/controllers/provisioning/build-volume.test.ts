import { describe, expect, it } from 'vitest'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { buildVolume } from './build-volume.ts'
import { isSameStorage, mismatchOf } from './check-volume.ts'
import type { NewVolume } from './provisioner.ts'

const aClaim = (spec: object = {}): Claim => ({
  metadata: { namespace: 'shop', name: 'data', uid: 'u1', resourceVersion: '53' },
  spec: {
    storageClassName: 'fast',
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '4Gi' } },
    ...spec,
  },
})
const CLASS: StorageClass = { metadata: { name: 'fast' }, provisioner: 'gluster.org/gluster-volume' }
const MADE: NewVolume = { spec: { capacity: { storage: '4Gi' }, hostPath: { path: '/x' } } }
const BY = { provisionerName: 'gluster.org/gluster-volume', finalizer: 'example.com/held' }
const build = (created: NewVolume = MADE, claim = aClaim(), storageClass = CLASS) =>
  buildVolume({ claim, storageClass, volumeName: 'pvc-u1', selectedNode: undefined }, created, BY)

describe('buildVolume', () => {
  it('PROV-11 copies fields of claim and class', () => {
    expect(build()).toEqual({
      metadata: {
        name: 'pvc-u1',
        annotations: { [PROVISIONED_BY]: 'gluster.org/gluster-volume' },
        finalizers: ['example.com/held'],
      },
      spec: {
        capacity: { storage: '4Gi' },
        hostPath: { path: '/x' },
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'fast',
        claimRef: {
          kind: 'PersistentVolumeClaim',
          apiVersion: 'v1',
          namespace: 'shop',
          name: 'data',
          uid: 'u1',
          resourceVersion: '53',
        },
      },
    })
  })

  it('PROV-11 copies labels, annotations and spec that the storage returned', () => {
    const nodeAffinity = {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In' as const, values: ['a'] }] }],
      },
    }
    const volume = build({
      labels: { zone: 'a' },
      annotations: { 'v.org/id': '7' },
      spec: { ...MADE.spec, nodeAffinity },
    })
    expect(volume.metadata).toMatchObject({ labels: { zone: 'a' }, annotations: { 'v.org/id': '7' } })
    expect(volume.spec?.nodeAffinity).toEqual(nodeAffinity)
  })

  it('PROV-11 sets claimRef, class and provisioner regardless of the driver’s response', () => {
    const volume = build({
      annotations: { [PROVISIONED_BY]: 'someone-else' },
      spec: { ...MADE.spec, storageClassName: 'slow', claimRef: { name: 'another' } },
    })
    expect(volume.metadata.annotations?.[PROVISIONED_BY]).toBe('gluster.org/gluster-volume')
    expect(volume.spec).toMatchObject({ storageClassName: 'fast', claimRef: { name: 'data' } })
  })

  it('PROV-2 uses the class of the beta annotation', () => {
    const claim = aClaim({ storageClassName: undefined })
    claim.metadata.annotations = { 'volume.beta.kubernetes.io/storage-class': 'myClass' }
    expect(build(MADE, claim).spec?.storageClassName).toBe('myClass')
  })

  it('PROV-16 drops annotations that refer to secrets', () => {
    const annotations = Object.fromEntries(
      ['provisioner-deletion', 'controller-modify'].flatMap((what) => [
        [`volume.kubernetes.io/${what}-secret-name`, 'creds'],
        [`volume.kubernetes.io/${what}-secret-namespace`, 'vault'],
      ]),
    )
    expect(Object.keys(build({ ...MADE, annotations }).metadata.annotations ?? {})).toEqual([PROVISIONED_BY])
  })
})

describe('mismatchOf', () => {
  const given = (spec: object, labels?: Record<string, string>): PersistentVolume => {
    const volume = build({ ...MADE, ...(labels ? { labels } : {}) })
    return { ...volume, spec: { ...volume.spec, ...spec } }
  }
  it.each([
    ['PROV-11 exactly', aClaim(), given({}), undefined],
    ['PROV-11 more', aClaim(), given({ capacity: { storage: '5Gi' } }), undefined],
    ['PROV-11 the same in other units', aClaim(), given({ capacity: { storage: '4294967296' } }), undefined],
    ['PROV-11 one byte less', aClaim(), given({ capacity: { storage: '4294967295' } }), 'it has 4294967295'],
    ['PROV-11 no size', aClaim(), given({ capacity: {} }), 'reports no capacity'],
    [
      'PROV-11 another access mode',
      aClaim(),
      given({ accessModes: ['ReadOnlyMany'] }),
      'lacks the access modes ReadWriteOnce',
    ],
    ['PROV-11 more access modes', aClaim(), given({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] }), undefined],
    ['PROV-11 another mode', aClaim(), given({ volumeMode: 'Block' }), 'its volumeMode is Block'],
    ['PROV-11 no labels for a selector', aClaim({ selector: { matchLabels: { z: 'a' } } }), given({}), 'labels'],
    [
      'PROV-11 labels for a selector',
      aClaim({ selector: { matchLabels: { z: 'a' } } }),
      given({}, { z: 'a' }),
      undefined,
    ],
    [
      'PROV-11 a selector of exclusion',
      aClaim({ selector: { matchExpressions: [{ key: 'z', operator: 'NotIn', values: ['a'] }] } }),
      given({}, { z: 'a' }),
      'labels',
    ],
  ] as [string, Claim, PersistentVolume, string | undefined][])('%s', (_what, claim, volume, why) => {
    const mismatch = mismatchOf(volume, claim)
    if (why === undefined) expect(mismatch).toBeUndefined()
    else expect(mismatch).toContain(why)
  })
})

describe('isSameStorage', () => {
  const of = (spec: object): PersistentVolume => ({ metadata: { name: 'pv' }, spec })
  it.each([
    [
      'PROV-12 the same handle',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'd', volumeHandle: 'h' } },
      true,
    ],
    [
      'PROV-12 the same handle, found by another process',
      { csi: { driver: 'd', volumeHandle: 'h', volumeAttributes: { madeBy: 'a' } } },
      { csi: { driver: 'd', volumeHandle: 'h', volumeAttributes: { madeBy: 'b' } } },
      true,
    ],
    [
      'PROV-12 another handle',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'd', volumeHandle: 'i' } },
      false,
    ],
    [
      'PROV-12 another driver',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'e', volumeHandle: 'h' } },
      false,
    ],
    [
      'PROV-12 a path with the server’s defaults',
      { hostPath: { path: '/x' } },
      { hostPath: { path: '/x', type: '' } },
      true,
    ],
    ['PROV-12 another path', { hostPath: { path: '/x' } }, { hostPath: { path: '/y', type: '' } }, false],
    ['PROV-12 another kind of source', { hostPath: { path: '/x' } }, { local: { path: '/x' } }, false],
    ['PROV-12 no source at all', {}, {}, false],
  ])('%s', (_what, created, saved, is) => {
    expect(isSameStorage(of(created), of(saved))).toBe(is)
  })
})
