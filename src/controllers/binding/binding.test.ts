// The binding controllers end to end: objects before, run until idle, objects and events after. Every test runs on a
// server with atomic commits and on one without.
import { afterEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { DELETION_REQUESTED } from '../../volumes/deletion-requested.ts'
import {
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  MIGRATED_TO,
  PRE_RESIZE_CAPACITY,
  PROVISIONED_BY,
  PROVISIONER,
  PROVISIONER_BETA,
  SELECTED_NODE,
} from '../../volumes/names.ts'
import {
  type BindingFixture,
  type BindingFixtureOptions,
  createBindingFixture,
  hiding,
  summary,
} from './binding.fixture.ts'

const AVAILABLE = { status: { phase: 'Available' } }
const IS_DEFAULT = { 'storageclass.kubernetes.io/is-default-class': 'true' }
const DELAYED = { spec: { volumeBindingMode: 'WaitForFirstConsumer' } }
const EXTERNAL =
  "Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'disk.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
const NOTHING_AVAILABLE =
  'Normal FailedBinding: no persistent volumes available for this claim and no storage class is set'

let world: BindingFixture
afterEach(() => world.stop())

for (const oneByOne of [false, true]) {
  const start = async (options: BindingFixtureOptions = {}) => {
    world = await createBindingFixture({ oneByOne, ...options })
    return world
  }
  const boundTo = async (claimName: string) => (await world.getClaim(claimName)).spec?.volumeName
  const phaseOf = async (name: string) => (await world.getVolume(name)).status?.phase
  const patchClaim = (name: string, body: object, subresource?: string) =>
    world.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name },
      { type: 'merge', body },
      subresource ? { subresource } : {},
    )
  const patchVolume = (name: string, body: object) =>
    world.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })

  describe(oneByOne ? 'binding, one write at a time' : 'binding, atomic commits', () => {
    it('PROV-4 binds a claim to a volume that fits', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('c')
      await world.settle()
      expect(summary(await world.getClaim('c'), await world.getVolume('pv'))).toEqual({
        claim: {
          phase: 'Bound',
          volumeName: 'pv',
          capacity: '1Gi',
          annotations: [BIND_COMPLETED, BOUND_BY_CONTROLLER],
        },
        volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
      })
      expect((await world.getClaim('c')).status?.accessModes).toEqual(['ReadWriteOnce'])
      expect((await world.getVolume('pv')).spec?.claimRef).toMatchObject({
        kind: 'PersistentVolumeClaim',
        apiVersion: 'v1',
        resourceVersion: expect.any(String),
      })
      expect([world.eventsOf('c'), world.eventsOf('pv'), world.standings()]).toEqual([[], [], {}])
    })

    it('PROV-4 binds a waiting claim to a new volume', async () => {
      await start()
      await world.claim('c')
      await world.settle()
      expect(world.eventsOf('c')).toEqual([NOTHING_AVAILABLE])
      await world.volume('pv')
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-4 keeps a claim pending, with an event, if every volume is too small', async () => {
      await start()
      await world.volume('small', AVAILABLE)
      await world.claim('c', { size: '2Gi' })
      await world.settle()
      expect((await world.getClaim('c')).status).toEqual({ phase: 'Pending' })
      expect(world.eventsOf('c')).toEqual([NOTHING_AVAILABLE])
      expect(world.standings()).toEqual({
        'default/c': 'stuck: no persistent volumes available for this claim and no storage class is set',
      })
    })

    it('PROV-4 binds the smaller of two volumes that fit', async () => {
      await start()
      await world.volume('large', { size: '10Gi', ...AVAILABLE })
      await world.volume('small', AVAILABLE)
      await world.claim('c')
      await world.settle()
      expect(await boundTo('c')).toBe('small')
      expect(await phaseOf('large')).toBe('Available')
    })

    it('PROV-4 prefers a volume reserved by name, without the bound-by-controller annotation', async () => {
      await start()
      await world.volume('reserved', { size: '10Gi', claim: { name: 'c' }, ...AVAILABLE })
      await world.volume('free', AVAILABLE)
      await world.claim('c')
      await world.settle()
      expect(summary(await world.getClaim('c'), await world.getVolume('reserved'))).toEqual({
        claim: {
          phase: 'Bound',
          volumeName: 'reserved',
          capacity: '10Gi',
          annotations: [BIND_COMPLETED, BOUND_BY_CONTROLLER],
        },
        volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [] },
      })
    })

    it('PROV-4 releases a volume reserved for an earlier claim of the same name', async () => {
      await start()
      await world.volume('theirs', { claim: { name: 'c', uid: 'another' }, status: { phase: 'Bound' } })
      await world.claim('c')
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Pending')
      expect(await phaseOf('theirs')).toBe('Released')
    })

    it('PROV-4 binds only a volume whose labels match the selector', async () => {
      await start()
      await world.volume('other', AVAILABLE)
      await world.claim('c', { spec: { selector: { matchLabels: { tier: 'fast' } } } })
      await world.settle()
      expect(world.eventsOf('c')).toEqual([NOTHING_AVAILABLE])
      await world.volume('pv', { metadata: { labels: { tier: 'fast' } } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-4 binds a waiting claim to a volume that gets a matching label', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('c', { spec: { selector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] } } })
      await world.settle()
      await patchVolume('pv', { metadata: { labels: { tier: 'fast' } } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-4 binds a claim to the volume it names, although a smaller one is free', async () => {
      await start()
      await world.volume('named', { size: '10Gi', ...AVAILABLE })
      await world.volume('free', AVAILABLE)
      await world.claim('c', { spec: { volumeName: 'named' } })
      await world.settle()
      expect(summary(await world.getClaim('c'), await world.getVolume('named'))).toEqual({
        claim: { phase: 'Bound', volumeName: 'named', capacity: '10Gi', annotations: [BIND_COMPLETED] },
        volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
      })
    })

    it('PROV-4 waits, with an event, for a named volume that does not exist', async () => {
      await start()
      await world.claim('c', { spec: { volumeName: 'later' } })
      await world.settle()
      const waits = 'volume "later" not found: the claim names it and waits until it exists'
      expect(world.eventsOf('c')).toEqual([`Normal FailedBinding: ${waits}`])
      expect(world.standings()).toEqual({ 'default/c': `stuck: ${waits}` })
      await world.volume('later')
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Bound')
    })

    const MISMATCHES: [string, object, object, string][] = [
      ['is too small', { size: '1Gi' }, { size: '2Gi' }, 'requested PV is too small'],
      ['has another class', { spec: { storageClassName: 'gold' } }, {}, 'storageClassName does not match'],
      ['has another volume mode', {}, { spec: { volumeMode: 'Block' } }, 'incompatible volumeMode'],
      ['lacks an access mode', {}, { spec: { accessModes: ['ReadWriteMany'] } }, 'incompatible accessMode'],
      [
        'has another attributes class',
        {},
        { spec: { volumeAttributesClassName: 'silver' } },
        'volumeAttributesClassName does not match',
      ],
    ]
    for (const [what, volume, claim, why] of MISMATCHES) {
      it(`PROV-4 does not bind a claim to a named volume that ${what}, and leaves the volume unchanged`, async () => {
        await start()
        await world.volume('pv', { ...volume, ...AVAILABLE })
        await world.claim('c', { ...claim, spec: { volumeName: 'pv', ...(claim as any).spec } })
        await world.settle()
        expect((await world.getClaim('c')).status).toEqual({ phase: 'Pending' })
        expect(world.eventsOf('c')).toEqual([`Warning VolumeMismatch: Cannot bind to requested volume "pv": ${why}`])
        expect((await world.getVolume('pv')).spec?.claimRef).toBeUndefined()
      })
    }

    it('PROV-4 binds a claim to the volume it names although its selector does not match', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('c', { spec: { volumeName: 'pv', selector: { matchLabels: { a: 'b' } } } })
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Bound')
    })

    it('PROV-4 waits for a named volume of another claim, and binds it once it is free', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('first')
      await world.settle()
      await world.claim('second', { spec: { volumeName: 'pv' } })
      await world.settle()
      expect(world.eventsOf('second')).toEqual([
        'Warning FailedBinding: volume "pv" already bound to a different claim. It belongs to "default/first".',
      ])
      expect((await world.getClaim('second')).status).toEqual({ phase: 'Pending' })
      await world.client.patch(
        persistentVolumeClaimKind,
        { namespace: 'default', name: 'first' },
        { type: 'merge', body: { metadata: { finalizers: null } } },
      )
      await world.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'first' })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Released')
      await patchVolume('pv', { spec: { claimRef: null } })
      await world.settle()
      expect((await world.getClaim('second')).status?.phase).toBe('Bound')
    })

    it('PROV-14 binds a volume whose deletion was requested only after the annotation is removed', async () => {
      await start()
      const annotations = { [DELETION_REQUESTED]: '2026-01-01T00:00:00Z' }
      await world.volume('pv', { annotations, ...AVAILABLE })
      await world.claim('any')
      await world.claim('named', { spec: { volumeName: 'pv' } })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Released')
      expect(world.eventsOf('pv')[0]).toMatch(/^Warning VolumeHeldBack: .*no claim is bound to it/)
      const why = 'Warning VolumeMismatch: Cannot bind to requested volume "pv": its storage is being deleted'
      expect(new Set(world.eventsOf('named'))).toEqual(new Set([why]))
      await patchVolume('pv', { spec: { claimRef: { namespace: 'default', name: 'named' } } })
      await world.settle()
      expect(await boundTo('any')).toBeUndefined()
      expect((await world.getClaim('named')).status?.phase).toBe('Pending')
      await patchVolume('pv', { metadata: { annotations: { [DELETION_REQUESTED]: null } } })
      await world.settle()
      expect((await world.getClaim('named')).status?.phase).toBe('Bound')
    })

    it('PROV-4 leaves a claim unchanged, with an event, if a controller bound it to the volume of another claim', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('first')
      await world.settle()
      const annotations = { [BOUND_BY_CONTROLLER]: 'yes' }
      const before = await world.claim('second', { spec: { volumeName: 'pv' }, annotations })
      await world.settle()
      expect(world.eventsOf('second')).toEqual([
        'Warning FailedBinding: volume "pv" already bound to a different claim. It belongs to "default/first".',
      ])
      expect(await world.getClaim('second')).toEqual(before)
    })

    it('PROV-4 compares large sizes exactly', async () => {
      await start()
      const [size, oneByteMore] = ['9223372036854775806', '9223372036854775807'] // equal as floating-point numbers
      await world.volume('pv', { size, ...AVAILABLE })
      await world.claim('more', { size: oneByteMore })
      await world.settle()
      expect((await world.getClaim('more')).status?.phase).toBe('Pending')
      await world.claim('exact', { size })
      await world.settle()
      expect(await boundTo('exact')).toBe('pv')
    })

    it('PROV-4 binds a waiting claim to a volume that is expanded to a sufficient size', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('c', { size: '2Gi' })
      await world.settle()
      await patchVolume('pv', { spec: { capacity: { storage: '2Gi' } } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-4 binds each claim of a burst to a different volume', async () => {
      await start()
      const names = Array.from({ length: 50 }, (_, n) => `n${n}`)
      for (const name of names) await world.volume(name)
      for (const name of names) await world.claim(name)
      await world.settle()
      const taken = await Promise.all(names.map(boundTo))
      expect(new Set(taken)).toEqual(new Set(names))
      for (const [index, name] of taken.entries()) {
        expect((await world.getVolume(name ?? '')).spec?.claimRef?.name).toBe(names[index])
      }
    })

    it('PROV-6 needs reconciles proportional to claims plus volumes, not to their product', async () => {
      await start()
      const COUNT = 200
      for (let n = 0; n < COUNT; n++) await world.claim(`c${n}`)
      await world.settle()
      const before = world.reconciles.claims
      for (let n = 0; n < COUNT; n++) await world.volume(`v${n}`)
      await world.settle()
      for (let n = 0; n < COUNT; n++) expect(await boundTo(`c${n}`)).toBeDefined()
      // One reconcile that binds, and at most one more per written object.
      const perClaim = oneByOne ? 5 : 2
      const perVolume = oneByOne ? 6 : 3
      expect((world.reconciles.claims - before) / COUNT).toBeLessThanOrEqual(perClaim)
      expect(world.reconciles.volumes / COUNT).toBeLessThanOrEqual(perVolume)
    })

    it('PROV-2 matches classes given by the beta annotation', async () => {
      await start()
      const beta = { 'volume.beta.kubernetes.io/storage-class': 'gold' }
      const alpha = { 'volume.alpha.kubernetes.io/storage-class': 'silver' }
      await world.volume('beta', { annotations: beta, ...AVAILABLE })
      await world.volume('alpha', { annotations: alpha, ...AVAILABLE })
      await world.claim('wants-gold', { spec: { storageClassName: 'gold' } })
      await world.claim('wants-silver', { annotations: alpha })
      await world.settle()
      expect(await boundTo('wants-gold')).toBe('beta')
      expect(await boundTo('wants-silver')).toBe('alpha')
    })

    it('VAC-4 treats an absent and an empty attributes class as equal', async () => {
      await start()
      await world.volume('plain', AVAILABLE)
      const csi = { hostPath: undefined, csi: { driver: 'd.example.com', volumeHandle: 'h' } }
      await world.volume('gold', { spec: { ...csi, volumeAttributesClassName: 'gold' }, ...AVAILABLE })
      await world.claim('wants-gold', { spec: { volumeAttributesClassName: 'gold' } })
      await world.claim('wants-none', { spec: { volumeAttributesClassName: '' } })
      await world.settle()
      expect([await boundTo('wants-gold'), await boundTo('wants-none')]).toEqual(['gold', 'plain'])
    })

    it('VAC-13 copies the attributes class of a bound volume to the status of the claim', async () => {
      await start()
      const spec = {
        hostPath: undefined,
        csi: { driver: 'd.example.com', volumeHandle: 'h' },
        volumeAttributesClassName: 'gold',
      }
      await world.volume('gold', { spec, ...AVAILABLE })
      await world.claim('c', { spec: { volumeAttributesClassName: 'gold' } })
      await world.settle()
      expect((await world.getClaim('c')).status).toMatchObject({
        phase: 'Bound',
        currentVolumeAttributesClassName: 'gold',
      })
    })

    it('PROV-4 reports the size before the expansion while the file system is not expanded', async () => {
      await start()
      await world.volume('pv', { size: '2Gi', annotations: { [PRE_RESIZE_CAPACITY]: '1Gi' }, ...AVAILABLE })
      await world.claim('c')
      await world.settle()
      expect((await world.getClaim('c')).status?.capacity).toEqual({ storage: '1Gi' })
    })

    it('PROV-4 does not change the capacity of a bound claim', async () => {
      await start()
      await world.volume('pv', { size: '2Gi', ...AVAILABLE })
      await world.claim('c')
      await world.settle()
      await patchClaim('c', { status: { capacity: { storage: '1Gi' } } }, 'status')
      await world.settle()
      expect((await world.getClaim('c')).status?.capacity).toEqual({ storage: '1Gi' })
    })
  })

  describe(oneByOne ? 'delayed binding, one write at a time' : 'delayed binding, atomic commits', () => {
    it('PROV-4 waits for a pod with a WaitForFirstConsumer class, although a volume is free', async () => {
      await start()
      await world.storageClass('late', DELAYED)
      await world.volume('pv', { spec: { storageClassName: 'late' }, ...AVAILABLE })
      await world.claim('c', { spec: { storageClassName: 'late' } })
      await world.settle()
      expect(world.eventsOf('c')).toEqual([
        'Normal WaitForFirstConsumer: waiting for first consumer to be created before binding',
      ])
      expect((await world.getClaim('c')).status).toEqual({ phase: 'Pending' })
    })

    it('PROV-4 names the pods it waits for in the event', async () => {
      await start()
      await world.storageClass('late', DELAYED)
      await world.claim('c', { spec: { storageClassName: 'late' } })
      await world.settle()
      await world.pod('b', 'c')
      await world.settle()
      await world.pod('a', 'c')
      await world.pod('ended', 'c', { phase: 'Succeeded' })
      await world.pod('placed', 'c', { nodeName: 'n' })
      await world.settle()
      expect(world.eventsOf('c')[1]).toBe('Normal WaitForPodScheduled: waiting for pod b to be scheduled')
      expect(world.eventsOf('c').at(-1)).toBe('Normal WaitForPodScheduled: waiting for pods a,b to be scheduled')
    })

    it('PROV-4 binds a reserved volume without waiting for a pod', async () => {
      await start()
      await world.storageClass('late', DELAYED)
      await world.claim('c', { spec: { storageClassName: 'late' } })
      await world.settle()
      await world.volume('pv', { spec: { storageClassName: 'late' }, claim: { name: 'c' } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-7 requests provisioning once a node is selected, although a volume is free', async () => {
      await start()
      await world.storageClass('late', DELAYED)
      await world.volume('pv', { spec: { storageClassName: 'late' }, ...AVAILABLE })
      await world.claim('c', { spec: { storageClassName: 'late' }, annotations: { [SELECTED_NODE]: 'n' } })
      await world.settle()
      expect((await world.getClaim('c')).metadata.annotations).toMatchObject({ [PROVISIONER]: 'disk.example.com' })
      expect(await phaseOf('pv')).toBe('Available')
    })
  })

  describe(oneByOne ? 'classes, one write at a time' : 'classes, atomic commits', () => {
    it('PROV-7 requests provisioning with both annotations and records an event', async () => {
      await start()
      await world.storageClass('gold')
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      const claim = await world.getClaim('c')
      expect(claim.metadata.annotations).toEqual({
        [PROVISIONER]: 'disk.example.com',
        [PROVISIONER_BETA]: 'disk.example.com',
      })
      expect(claim.status).toEqual({ phase: 'Pending' })
      expect(world.eventsOf('c')).toEqual([EXTERNAL])
      expect(world.standings()['default/c']).toBe(
        'stuck: waiting for the provisioner "disk.example.com" to create a volume',
      )
    })

    it('PROV-7 records no event when the provisioner runs in this process', async () => {
      await start({ inProcess: [{ name: 'kubernetes.io/host-path', owns: () => false }] })
      await world.storageClass('own', { provisioner: 'kubernetes.io/host-path' })
      await world.claim('c', { spec: { storageClassName: 'own' } })
      await world.settle()
      expect((await world.getClaim('c')).metadata.annotations).toMatchObject({
        [PROVISIONER]: 'kubernetes.io/host-path',
        [PROVISIONER_BETA]: 'kubernetes.io/host-path',
      })
      expect(world.eventsOf('c')).toEqual([])
    })

    it('PROV-7 does not request provisioning while a volume of the class is free', async () => {
      await start()
      await world.storageClass('gold')
      await world.volume('pv', { spec: { storageClassName: 'gold' }, ...AVAILABLE })
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
      expect((await world.getClaim('c')).metadata.annotations).not.toHaveProperty([PROVISIONER])
    })

    it('PROV-11 binds a provisioned volume without the bound-by-controller annotation', async () => {
      await start()
      await world.storageClass('gold')
      const { metadata } = await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      await world.volume('made', {
        spec: { storageClassName: 'gold', persistentVolumeReclaimPolicy: 'Delete' },
        annotations: { [PROVISIONED_BY]: 'disk.example.com' },
        claim: { name: 'c', uid: metadata.uid },
      })
      await world.settle()
      expect(summary(await world.getClaim('c'), await world.getVolume('made'))).toMatchObject({
        claim: { phase: 'Bound', volumeName: 'made' },
        volume: { phase: 'Bound', isOwned: true, annotations: [PROVISIONED_BY] },
      })
    })

    it('PROV-6 reports a missing class, and continues once it exists', async () => {
      await start()
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      expect(world.eventsOf('c')).toEqual(['Warning ProvisioningFailed: storageclass.storage.k8s.io "gold" not found'])
      expect((await world.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      await world.storageClass('gold')
      await world.settle()
      expect((await world.getClaim('c')).metadata.annotations).toMatchObject({ [PROVISIONER]: 'disk.example.com' })
    })

    it('PROV-6 binds a volume of a class that does not exist', async () => {
      await start()
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      await world.volume('pv', { spec: { storageClassName: 'gold' } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-6 binds a free volume although provisioning was requested', async () => {
      await start()
      await world.storageClass('gold')
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.settle()
      await world.volume('pv', { spec: { storageClassName: 'gold' } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-6 reports an unknown in-tree provisioner', async () => {
      await start()
      await world.storageClass('manual', { provisioner: 'kubernetes.io/no-provisioner' })
      await world.claim('c', { spec: { storageClassName: 'manual' } })
      await world.settle()
      expect(world.eventsOf('c')).toEqual([
        'Warning ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner',
      ])
      await world.volume('pv', { spec: { storageClassName: 'manual' } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
    })

    it('PROV-6 binds a claim with class "" only to a volume without class, and never provisions for it', async () => {
      await start()
      await world.storageClass('gold', { metadata: { annotations: IS_DEFAULT } })
      await world.volume('classy', { spec: { storageClassName: 'gold' }, ...AVAILABLE })
      await world.claim('c', { spec: { storageClassName: '' } })
      await world.settle()
      expect((await world.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      expect(world.eventsOf('c')).toEqual([NOTHING_AVAILABLE])
      await world.volume('plain', { size: '10Gi' })
      await world.settle()
      expect(await boundTo('c')).toBe('plain')
    })

    it('PROV-3 assigns the default class once it exists', async () => {
      await start()
      await world.claim('c')
      await world.claim('none', { spec: { storageClassName: '' } })
      await world.claim('annotated', { annotations: { 'volume.beta.kubernetes.io/storage-class': 'x' } })
      await world.settle()
      await world.storageClass('usual')
      await world.settle()
      expect((await world.getClaim('c')).spec?.storageClassName).toBeUndefined()
      await world.client.patch(
        storageClassKind,
        { name: 'usual' },
        { type: 'merge', body: { metadata: { annotations: IS_DEFAULT } } },
      )
      await world.settle()
      expect(await world.getClaim('c')).toMatchObject({
        spec: { storageClassName: 'usual' },
        status: { phase: 'Pending' },
        metadata: { annotations: { [PROVISIONER]: 'disk.example.com' } },
      })
      expect((await world.getClaim('none')).spec?.storageClassName).toBe('')
      expect((await world.getClaim('annotated')).spec?.storageClassName).toBeUndefined()
    })

    it('PROV-3 binds a volume without class rather than assigning the default class', async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      await world.claim('c')
      await world.storageClass('usual', { metadata: { annotations: IS_DEFAULT } })
      await world.settle()
      expect(await boundTo('c')).toBe('pv')
      expect((await world.getClaim('c')).spec?.storageClassName).toBeUndefined()
    })

    it('PROV-13 neither binds nor provisions for a claim that is being deleted', async () => {
      await start()
      await world.storageClass('gold')
      await world.volume('pv', { spec: { storageClassName: 'gold' }, ...AVAILABLE })
      await world.claim('c', { spec: { storageClassName: 'gold' } })
      await world.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      await world.settle()
      expect((await world.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      expect(await phaseOf('pv')).toBe('Available')
      expect(world.standings()['default/c']).toBe('stuck: the claim is being deleted')
    })
  })

  describe(oneByOne ? 'inconsistent bindings, one write at a time' : 'inconsistent bindings, atomic commits', () => {
    const bind = async () => {
      await start()
      await world.volume('pv', AVAILABLE)
      const claim = await world.claim('c')
      await world.settle()
      return claim
    }

    it('PROV-5 marks a bound claim lost, with one event, when its volume is gone', async () => {
      await bind()
      await patchVolume('pv', { metadata: { finalizers: null } })
      await world.client.delete(persistentVolumeKind, { name: 'pv' })
      await world.settle()
      expect((await world.getClaim('c')).status).toEqual({ phase: 'Lost' })
      await patchClaim('c', { metadata: { labels: { look: 'again' } } })
      await world.settle()
      expect(world.eventsOf('c')).toEqual([
        'Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
      ])
    })

    it('PROV-5 marks a bound claim lost when its volumeName was removed', async () => {
      await start()
      await world.claim('c', { annotations: { [BIND_COMPLETED]: 'yes' }, status: { phase: 'Bound' } })
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Lost')
      expect(world.eventsOf('c')).toEqual([
        'Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
      ])
    })

    it('PROV-5 marks a claim lost whose volume is bound to another claim', async () => {
      await bind()
      await world.claim('thief', { spec: { volumeName: 'pv' }, annotations: { [BIND_COMPLETED]: 'yes' } })
      await world.settle()
      expect((await world.getClaim('thief')).status?.phase).toBe('Lost')
      expect(world.eventsOf('thief')).toEqual([
        'Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly',
      ])
      expect((await world.getVolume('pv')).spec?.claimRef?.name).toBe('c')
    })

    it('PROV-5 restores a removed claimRef', async () => {
      const { metadata } = await bind()
      await patchVolume('pv', { spec: { claimRef: null } })
      await world.settle()
      expect((await world.getVolume('pv')).spec?.claimRef?.uid).toBe(metadata.uid)
      expect(await phaseOf('pv')).toBe('Bound')
    })

    it('PROV-5 binds a lost claim again when its volume reappears', async () => {
      await start()
      await world.claim('c', {
        spec: { volumeName: 'pv' },
        annotations: { [BIND_COMPLETED]: 'yes' },
        status: { phase: 'Bound' },
      })
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Lost')
      await world.volume('pv')
      await world.settle()
      expect((await world.getClaim('c')).status).toMatchObject({ phase: 'Bound', capacity: { storage: '1Gi' } })
    })

    it('PROV-5 frees the second of two volumes that a controller bound to one claim', async () => {
      await start()
      const { metadata } = await world.claim('c')
      for (const name of ['a', 'b']) {
        const annotations = { [BOUND_BY_CONTROLLER]: 'yes' }
        await world.volume(name, { annotations, claim: { name: 'c', uid: metadata.uid }, ...AVAILABLE })
      }
      await world.settle()
      expect(await boundTo('c')).toBe('a')
      const other = await world.getVolume('b')
      expect([other.spec?.claimRef, other.metadata.annotations ?? {}, other.status?.phase]).toEqual([
        undefined,
        {},
        'Available',
      ])
    })

    it('PROV-13 keeps a volume reserved by a user for a claim that is bound to another one', async () => {
      const { metadata } = await bind()
      await world.volume('mine', { claim: { name: 'c', uid: metadata.uid } })
      await world.settle()
      const volume = await world.getVolume('mine')
      expect(volume.status?.phase).toBe('Available')
      expect(volume.spec?.claimRef).toEqual({ namespace: 'default', name: 'c' })
    })

    it('PROV-13 releases a provisioned volume whose claim is bound to another one', async () => {
      const { metadata } = await bind()
      await world.volume('late', {
        claim: { name: 'c', uid: metadata.uid },
        annotations: { [PROVISIONED_BY]: 'disk.example.com' },
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
      })
      await world.settle()
      expect(await phaseOf('late')).toBe('Released')
      expect(world.standings().late).toBe(
        'stuck: its claim was deleted: waiting for the provisioner "disk.example.com" to delete it',
      )
    })

    it('PROV-4 reports a mismatch of volume modes on both objects', async () => {
      await start()
      const { metadata } = await world.claim('c', { spec: { volumeMode: 'Block' } })
      await world.volume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await world.settle()
      expect(world.eventsOf('pv')).toContain(
        'Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
      )
      expect(world.eventsOf('c')).toContain(
        'Warning VolumeMismatch: Cannot bind PersistentVolume "pv" to requested PersistentVolumeClaim due to incompatible volumeMode.',
      )
      expect(await boundTo('c')).toBeUndefined()
    })
  })

  describe(oneByOne ? 'released volumes, one write at a time' : 'released volumes, atomic commits', () => {
    const GONE = { name: 'gone', uid: 'gone' }
    const BOUND = { status: { phase: 'Bound' } }

    it('PROV-15 releases a volume whose claim was deleted, and with Retain keeps it until its claimRef is removed', async () => {
      await start()
      await world.volume('pv', { claim: GONE, ...BOUND })
      await world.claim('waits')
      await world.settle()
      expect(await phaseOf('pv')).toBe('Released')
      expect((await world.getVolume('pv')).spec?.claimRef?.uid).toBe('gone')
      expect(world.standings().pv).toBe(
        'stuck: its claim was deleted and its reclaim policy is Retain: it keeps its data until its claimRef is removed',
      )
      expect(await boundTo('waits')).toBeUndefined()
      await patchVolume('pv', { spec: { claimRef: null } })
      await world.settle()
      expect(await boundTo('waits')).toBe('pv')
    })

    it('PROV-14 releases the volume of a deleted claim', async () => {
      await start()
      await world.volume('pv', { spec: { persistentVolumeReclaimPolicy: 'Delete' }, ...AVAILABLE })
      await world.claim('c')
      await world.settle()
      await patchClaim('c', { metadata: { finalizers: null } })
      await world.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      const phases: (string | undefined)[] = []
      const watch = await world.api.watch('/api/v1/persistentvolumes?watch=1')
      await world.settle()
      for (const { object } of watch.events) phases.push(object.status?.phase)
      watch.close()
      expect(phases.slice(-2)).toEqual(['Released', 'Failed'])
    })

    it('PROV-20 fails a volume without a deleter, with the reason', async () => {
      await start()
      await world.volume('pv', { claim: GONE, spec: { persistentVolumeReclaimPolicy: 'Delete' }, ...BOUND })
      await world.settle()
      const message =
        'error getting deleter volume plugin for volume "pv": no deletable volume plugin matched; delete its storage by hand, then the volume'
      expect((await world.getVolume('pv')).status).toMatchObject({ phase: 'Failed', message })
      await patchVolume('pv', { metadata: { labels: { look: 'again' } } })
      await world.settle()
      expect(world.eventsOf('pv')).toEqual([`Warning VolumeFailedDelete: ${message}`])
    })

    const LEFT: [string, object][] = [
      ['an external provisioner made it', { annotations: { [PROVISIONED_BY]: 'disk.example.com' } }],
      ['a provisioner in this process made it', { annotations: { [PROVISIONED_BY]: 'kubernetes.io/own' } }],
      ['its source is a CSI driver', { spec: { hostPath: undefined, csi: { driver: 'd.io', volumeHandle: 'h' } } }],
      ['a CSI driver has taken it over', { annotations: { [MIGRATED_TO]: 'd.io' } }],
      [
        'a provisioner in this process owns its kind of source',
        { spec: { hostPath: undefined, nfs: { server: 's', path: '/' } } },
      ],
    ]
    for (const [why, parts] of LEFT) {
      it(`PROV-14 leaves a released volume to its deleter: ${why}`, async () => {
        await start({ inProcess: [{ name: 'kubernetes.io/own', owns: ({ spec }) => spec?.nfs !== undefined }] })
        const spec = { persistentVolumeReclaimPolicy: 'Delete', ...(parts as any).spec }
        await world.volume('pv', { claim: GONE, ...BOUND, ...parts, spec })
        await world.settle()
        expect(await phaseOf('pv')).toBe('Released')
        expect(world.eventsOf('pv')).toEqual([])
        expect(world.standings().pv).toMatch(
          /^stuck: its claim was deleted: waiting for the provisioner ".*" to delete it$/,
        )
      })
    }

    it('PROV-14 fails a volume of a removed in-tree provisioner', async () => {
      await start()
      await world.volume('pv', {
        claim: GONE,
        annotations: { [PROVISIONED_BY]: 'kubernetes.io/aws-ebs' },
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
        ...BOUND,
      })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Failed')
      expect(world.eventsOf('pv')[0]).toContain('no volume plugin matched name: kubernetes.io/aws-ebs')
    })

    it('PROV-14 reclaims a volume that is being deleted', async () => {
      await start()
      await world.volume('pv', { claim: GONE, spec: { persistentVolumeReclaimPolicy: 'Delete' }, ...BOUND })
      await world.client.delete(persistentVolumeKind, { name: 'pv' })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Failed')
    })

    it('PROV-14 waits with Recycle for pods that use the volume, then reports that there is no recycler', async () => {
      await start()
      await world.volume('pv', { claim: GONE, spec: { persistentVolumeReclaimPolicy: 'Recycle' }, ...BOUND })
      await world.pod('a', 'gone', { nodeName: 'n', phase: 'Running' })
      await world.pod('b', 'gone')
      await world.pod('ended', 'gone', { nodeName: 'n', phase: 'Succeeded' })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Released')
      expect(world.eventsOf('pv')).toEqual(['Normal VolumeFailedRecycle: Volume is used by pods: default/a,default/b'])
      for (const name of ['a', 'b']) {
        await world.api.patch(
          `/api/v1/namespaces/default/pods/${name}/status`,
          { status: { phase: 'Failed' } },
          'merge',
        )
      }
      await world.settle()
      expect(await phaseOf('pv')).toBe('Failed')
      expect(world.eventsOf('pv').at(-1)).toMatch(
        /^Warning VolumeFailedRecycle: No recycler plugin found for the volume!/,
      )
    })

    it('PROV-5 keeps the volume of a claim that the cache does not show yet', async () => {
      const hidden = { claim: '' }
      await start({ through: (client) => hiding(client, hidden) })
      hidden.claim = 'c'
      const { metadata } = await world.claim('c', { spec: { volumeName: 'pv' } })
      await world.volume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Bound')
    })

    it('PROV-5 keeps the volume of a claim while the cache shows an earlier claim of the same name', async () => {
      const hidden = { claim: '' }
      await start({ through: (client) => hiding(client, hidden) })
      await world.claim('c')
      await world.settle()
      hidden.claim = 'c'
      await patchClaim('c', { metadata: { finalizers: null } })
      await world.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      const { metadata } = await world.claim('c', { spec: { volumeName: 'pv' } })
      await world.volume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await world.settle()
      expect(await phaseOf('pv')).toBe('Bound')
    })

    it('PROV-5 does not mark a claim lost whose volume the cache does not show yet', async () => {
      const hidden = { claim: '', volume: 'pv' }
      await start({ through: (client) => hiding(client, hidden) })
      const { metadata } = await world.claim('c', {
        spec: { volumeName: 'pv' },
        annotations: { [BIND_COMPLETED]: 'yes' },
        status: { phase: 'Bound' },
      })
      await world.volume('pv', { claim: { name: 'c', uid: metadata.uid }, ...BOUND })
      await world.settle()
      expect((await world.getClaim('c')).status?.phase).toBe('Bound')
      expect(world.eventsOf('c')).toEqual([])
    })
  })
}

describe('events', () => {
  it('PROV-6 are stored, with the component persistentvolume-controller', async () => {
    world = await createBindingFixture({ ownEvents: true })
    await world.claim('c')
    await world.settle()
    const { json } = await world.api.get('/api/v1/namespaces/default/events')
    expect(json.items).toHaveLength(1)
    expect(json.items[0]).toMatchObject({
      involvedObject: { kind: 'PersistentVolumeClaim', name: 'c' },
      reason: 'FailedBinding',
      type: 'Normal',
      source: { component: 'persistentvolume-controller' },
    })
  })
})
