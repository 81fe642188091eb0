import { describe, expect, it } from 'vitest'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { aClaim, build, NEW_VOLUME } from './built-volume.fixture.ts'

describe('buildVolume', () => {
  it('PROV-11 copies fields of the claim and the class', () => {
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

  it('PROV-11 copies the labels, annotations and spec of the new volume', () => {
    const nodeAffinity = {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In' as const, values: ['a'] }] }],
      },
    }
    const volume = build({
      labels: { zone: 'a' },
      annotations: { 'v.org/id': '7' },
      spec: { ...NEW_VOLUME.spec, nodeAffinity },
    })
    expect(volume.metadata).toMatchObject({ labels: { zone: 'a' }, annotations: { 'v.org/id': '7' } })
    expect(volume.spec?.nodeAffinity).toEqual(nodeAffinity)
  })

  it('PROV-11 overrides the claimRef, class and provisioner of the new volume', () => {
    const volume = build({
      annotations: { [PROVISIONED_BY]: 'someone-else' },
      spec: { ...NEW_VOLUME.spec, storageClassName: 'slow', claimRef: { name: 'another' } },
    })
    expect(volume.metadata.annotations?.[PROVISIONED_BY]).toBe('gluster.org/gluster-volume')
    expect(volume.spec).toMatchObject({ storageClassName: 'fast', claimRef: { name: 'data' } })
  })

  it('PROV-2 uses the class of the beta annotation', () => {
    const claim = aClaim({ storageClassName: undefined })
    claim.metadata.annotations = { 'volume.beta.kubernetes.io/storage-class': 'myClass' }
    expect(build(NEW_VOLUME, claim).spec?.storageClassName).toBe('myClass')
  })

  it('PROV-16 omits annotations that refer to secrets', () => {
    const annotations = Object.fromEntries(
      ['provisioner-deletion', 'controller-modify'].flatMap((purpose) => [
        [`volume.kubernetes.io/${purpose}-secret-name`, 'creds'],
        [`volume.kubernetes.io/${purpose}-secret-namespace`, 'vault'],
      ]),
    )
    expect(Object.keys(build({ ...NEW_VOLUME, annotations }).metadata.annotations ?? {})).toEqual([PROVISIONED_BY])
  })
})
