import { describe, expect, it } from 'vitest'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeKind as kind } from './volume.ts'

const zoneAffinity = (key: string, zone = 'a') => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [zone] }] }] },
})
const aVolume = (spec: object = {}) =>
  tryCreate(kind, {
    metadata: { name: 'pv-1' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '10Gi' },
      csi: { driver: 'csi.example.com', volumeHandle: 'v1' },
      ...spec,
    },
  }).object
const update = (spec: object, change: (spec: Draft) => void, gates?: string) =>
  tryUpdate(kind, aVolume(spec), (draft) => change(draft.spec), { gates })

const OLD_ZONE = 'failure-domain.beta.kubernetes.io/zone'
const NEW_ZONE = 'topology.kubernetes.io/zone'
const secret = { name: 's', namespace: 'ns' }
const IMMUTABLE_SOURCE =
  'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n'

describe('updating a volume', () => {
  it.each<[string, (spec: Draft) => void]>([
    ['its size', (spec) => (spec.capacity.storage = '5Gi')],
    ['its access modes', (spec) => (spec.accessModes = ['ReadWriteMany'])],
    ['its reclaim policy', (spec) => (spec.persistentVolumeReclaimPolicy = 'Delete')],
    ['its class', (spec) => (spec.storageClassName = 'slow')],
    ['its claim', (spec) => (spec.claimRef = { namespace: 'shop', name: 'data' })],
    ['mount options', (spec) => (spec.mountOptions = ['ro'])],
    ['its node affinity if it has none', (spec) => (spec.nodeAffinity = zoneAffinity(NEW_ZONE))],
    ['the secret for expansion if it has none', (spec) => (spec.csi.controllerExpandSecretRef = secret)],
  ])('accepts a change to %s', (_case, change) => {
    expect(update({}, change).errors).toEqual([])
  })

  it.each<[string, (spec: Draft) => void]>([
    ['  csi.volumeHandle: "v1" -> "v2"', (spec) => (spec.csi.volumeHandle = 'v2')],
    ['  csi.fsType: (none) -> "xfs"', (spec) => (spec.csi.fsType = 'xfs')],
    [
      '  csi.nodeStageSecretRef: (none) -> {"name":"s","namespace":"ns"}',
      (spec) => (spec.csi.nodeStageSecretRef = secret),
    ],
  ])('rejects a change to its source: %s', (line, change) => {
    expect(update({}, change).errors).toEqual([IMMUTABLE_SOURCE + line])
  })

  it('rejects another type of source', () => {
    const { errors } = update({}, (spec) => {
      delete spec.csi
      spec.nfs = { server: 's', path: '/' }
    })
    expect(errors[0]).toMatch(IMMUTABLE_SOURCE)
  })

  it('rejects a change to the secret for expansion', () => {
    const csi = { driver: 'd', volumeHandle: 'h', controllerExpandSecretRef: secret }
    expect(update({ csi }, (spec) => (spec.csi.controllerExpandSecretRef.name = 't')).errors[0]).toMatch(
      IMMUTABLE_SOURCE,
    )
    expect(update({ csi }, (spec) => delete spec.csi.controllerExpandSecretRef).errors[0]).toMatch(IMMUTABLE_SOURCE)
  })

  it('rejects a change to its volumeMode', () => {
    expect(update({}, (spec) => (spec.volumeMode = 'Block')).errors).toEqual([
      'volumeMode: Invalid value: "Block": field is immutable',
    ])
  })

  it('rejects a change to its node affinity', () => {
    const nodeAffinity = zoneAffinity(NEW_ZONE)
    const immutableError =
      /^nodeAffinity: Invalid value: .*: field is immutable, except for updating from beta label to GA$/
    expect(update({ nodeAffinity }, (spec) => (spec.nodeAffinity = zoneAffinity(NEW_ZONE, 'b'))).errors[0]).toMatch(
      immutableError,
    )
    expect(update({ nodeAffinity }, (spec) => (spec.nodeAffinity = zoneAffinity(OLD_ZONE))).errors[0]).toMatch(
      immutableError,
    )
    expect(update({ nodeAffinity }, (spec) => delete spec.nodeAffinity).errors[0]).toMatch(immutableError)
  })

  it('accepts the successor of a deprecated label in its node affinity', () => {
    const nodeAffinity = zoneAffinity(OLD_ZONE)
    expect(update({ nodeAffinity }, (spec) => (spec.nodeAffinity = zoneAffinity(NEW_ZONE))).errors).toEqual([])
  })
})

describe('the attributes class of a volume', () => {
  const GATE_DISABLED = 'VolumeAttributesClass=false'
  const setClass = (oldName: string | undefined, newName: string | undefined, gates?: string) =>
    update({ volumeAttributesClassName: oldName }, (spec) => (spec.volumeAttributesClassName = newName), gates)

  it('VAC-2 can be set and changed', () => {
    expect(setClass(undefined, 'gold').errors).toEqual([])
    expect(setClass('silver', 'gold').errors).toEqual([])
  })

  it('VAC-2 cannot be removed', () => {
    expect(setClass('gold', undefined).errors).toEqual([
      'spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden',
    ])
  })

  it('VAC-12 is kept, and cannot change, while the feature gate is disabled', () => {
    expect(setClass('silver', 'gold', GATE_DISABLED).errors).toEqual([
      'spec.volumeAttributesClassName: Forbidden: update is forbidden when the VolumeAttributesClass feature gate is disabled',
    ])
    const { object, errors } = setClass('silver', 'silver', GATE_DISABLED)
    expect(errors).toEqual([])
    expect(object.spec).toHaveProperty('volumeAttributesClassName', 'silver')
  })

  it('is dropped while the feature gate is disabled, if the volume has none', () => {
    const { object, errors } = setClass(undefined, 'gold', GATE_DISABLED)
    expect(errors).toEqual([])
    expect(object.spec).not.toHaveProperty('volumeAttributesClassName')
  })
})
