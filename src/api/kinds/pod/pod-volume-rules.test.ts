import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { aClaimVolume, anEphemeralVolume, aPod } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const errorsOf = (...volumes: object[]) => tryCreate(podKind, aPod({ volumes })).errors

describe('the validation of pod volumes', () => {
  it.each([
    [{ name: '', emptyDir: {} }, 'spec.volumes[0].name: Required value'],
    [{ name: 'A', emptyDir: {} }, 'spec.volumes[0].name: Invalid value: "A": a lowercase RFC 1123 label'],
    [
      { ...aClaimVolume, emptyDir: {} },
      'spec.volumes[0].persistentVolumeClaim: Forbidden: may not specify more than 1 volume type',
    ],
    [
      { name: 'v', persistentVolumeClaim: { claimName: '' } },
      'spec.volumes[0].persistentVolumeClaim.claimName: Required value',
    ],
    [{ name: 'v', hostPath: { path: '' } }, 'spec.volumes[0].hostPath.path: Required value'],
    [
      { name: 'v', hostPath: { path: '/a/../b' } },
      'spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain \'..\'',
    ],
    [
      { name: 'v', hostPath: { path: '/a', type: 'Pipe' } },
      'spec.volumes[0].hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice"',
    ],
    [
      { name: 'v', emptyDir: { sizeLimit: '-1' } },
      'spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
    ],
    [
      { name: 'v', nfs: { server: 's', path: 'relative' } },
      'spec.volumes[0].nfs.path: Invalid value: "relative": must be an absolute path',
    ],
    [{ name: 'v', csi: { driver: '' } }, 'spec.volumes[0].csi.driver: Required value'],
    [{ name: 'v', secret: {} }, 'spec.volumes[0].secret.secretName: Required value'],
    [
      { name: 'v', secret: { secretName: 's', defaultMode: 512 } },
      'spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
    ],
    [
      { name: 'v', configMap: { name: 'c', items: [{ key: 'k', path: '../p' }] } },
      'spec.volumes[0].configMap.items[0].path: Invalid value: "../p": must not contain \'..\'',
    ],
    [
      { name: 'v', configMap: { name: 'c', items: [{ key: 'k', path: '..p' }] } },
      'spec.volumes[0].configMap.items[0].path: Invalid value: "..p": must not start with \'..\'',
    ],
    [
      { name: 'v', downwardAPI: { items: [{ path: 'p' }] } },
      'spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
    ],
    [
      { name: 'v', downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'spec.nodeName' } }] } },
      'spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName"',
    ],
    [
      { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 60 } }] } },
      'spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes',
    ],
  ])('rejects %j with %j', (volume, message) => {
    expect(errorsOf(volume)).toContainEqual(expect.stringContaining(message))
  })

  it('requires unique names', () => {
    expect(errorsOf(aClaimVolume, aClaimVolume)).toEqual(['spec.volumes[1].name: Duplicate value: "data"'])
  })

  it('requires a service account for a projected token', () => {
    const volume = { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }
    expect(errorsOf(volume)).toEqual([
      'spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
    ])
    const body = aPod({ volumes: [volume], spec: { serviceAccountName: 'robot' } })
    expect(tryCreate(podKind, body).errors).toEqual([])
  })
})

describe('ephemeral volumes', () => {
  it('CAP-14 require a template', () => {
    expect(errorsOf({ name: 'scratch', ephemeral: {} })).toEqual([
      'spec.volumes[0].ephemeral.volumeClaimTemplate: Required value',
    ])
  })

  it('CAP-14 may have only labels and annotations in the metadata of the template', () => {
    const validMetadata = { labels: { app: 'db' }, annotations: { note: 'x' } }
    expect(errorsOf(anEphemeralVolume({}, validMetadata))).toEqual([])
    expect(errorsOf(anEphemeralVolume({}, { name: 'claim', finalizers: ['a/b'] }))).toEqual([
      'spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set',
      'spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set',
    ])
  })

  it('CAP-14 must have a template that is a valid claim', () => {
    expect(errorsOf(anEphemeralVolume({ accessModes: [] }))).toEqual([
      'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required',
    ])
  })

  it('PIO-1 may request iops and throughput', () => {
    const requests = { storage: '1Gi', iops: '100', throughput: '10' }
    expect(errorsOf(anEphemeralVolume({ resources: { requests } }))).toEqual([])
    expect(errorsOf(anEphemeralVolume({ resources: { requests: { ...requests, iops: '-1' } } }))).toEqual([
      expect.stringContaining('spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.iops'),
    ])
  })

  it('CAP-14 must not be referenced by another volume through the generated claim', () => {
    const claimVolume = { name: 'copy', persistentVolumeClaim: { claimName: 'db-0-scratch' } }
    expect(errorsOf(anEphemeralVolume(), claimVolume)).toEqual([
      'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "db-0-scratch": must not reference a PVC that gets created for an ephemeral volume',
    ])
  })

  it('CAP-14 must not have a name that makes the claim name too long', () => {
    const name = 'p'.repeat(250)
    const { errors } = tryCreate(podKind, aPod({ name, volumes: [anEphemeralVolume()] }))
    expect(errors).toEqual([
      `spec.volumes[0].name: Invalid value: "scratch": PVC name "${name}-scratch": must be no more than 253 characters`,
    ])
  })
})
