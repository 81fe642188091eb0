// Tests of the binding controllers on a real API server: each creates objects, runs the controllers until they are idle,
// and checks objects and events. Most tests run with and without atomic commits.
import { afterEach, describe, expect, it } from 'vitest'
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { ObjectRef } from '../../client/index.ts'
import { DELETION_REQUESTED_ANNOTATION } from '../../volumes/deletion-requested.ts'
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
  type ClaimFields,
  createBindingFixture,
  hideFromWatches,
  summarizeBinding,
  type VolumeFields,
} from './binding.fixture.ts'

const AVAILABLE_STATUS = { status: { phase: 'Available' } }
const DEFAULT_CLASS_ANNOTATION = { 'storageclass.kubernetes.io/is-default-class': 'true' }
const DELAYED_CLASS = { spec: { volumeBindingMode: 'WaitForFirstConsumer' } }
const EXTERNAL_PROVISIONING =
  "Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'disk.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
const NO_VOLUME_AVAILABLE =
  'Normal FailedBinding: no persistent volumes available for this claim and no storage class is set'

let fixture: BindingFixture
afterEach(() => fixture.stop())

for (const isAtomic of [true, false]) {
  const commits = isAtomic ? 'atomic commits' : 'one write at a time'
  const start = async (options: BindingFixtureOptions = {}) => {
    fixture = await createBindingFixture({ isAtomic, ...options })
    return fixture
  }
  const readVolumeName = async (claimName: string) => (await fixture.getClaim(claimName)).spec?.volumeName
  const readPhase = async (name: string) => (await fixture.getVolume(name)).status?.phase
  const patchClaim = (name: string, body: object, subresource?: string) =>
    fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name },
      { type: 'merge', body },
      subresource ? { subresource } : {},
    )
  const patchVolume = (name: string, body: object) =>
    fixture.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })

  describe(`binding, ${commits}`, () => {
    it('PROV-4 binds a claim to a volume that fits', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c')
      await fixture.settle()
      expect(summarizeBinding(await fixture.getClaim('c'), await fixture.getVolume('pv'))).toEqual({
        claim: {
          phase: 'Bound',
          volumeName: 'pv',
          capacity: '1Gi',
          annotations: [BIND_COMPLETED, BOUND_BY_CONTROLLER],
        },
        volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
      })
      expect((await fixture.getClaim('c')).status?.accessModes).toEqual(['ReadWriteOnce'])
      expect((await fixture.getVolume('pv')).spec?.claimRef).toMatchObject({
        kind: 'PersistentVolumeClaim',
        apiVersion: 'v1',
        resourceVersion: expect.any(String),
      })
      expect([fixture.eventsOf('c'), fixture.eventsOf('pv'), fixture.queueStates()]).toEqual([[], [], {}])
    })

    it('PROV-4 binds a waiting claim to a new volume', async () => {
      await start()
      await fixture.createClaim('c')
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([NO_VOLUME_AVAILABLE])
      await fixture.createVolume('pv')
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-4 keeps a claim pending, with an event, if every volume is too small', async () => {
      await start()
      await fixture.createVolume('small', AVAILABLE_STATUS)
      await fixture.createClaim('c', { size: '2Gi' })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status).toEqual({ phase: 'Pending' })
      expect(fixture.eventsOf('c')).toEqual([NO_VOLUME_AVAILABLE])
      expect(fixture.queueStates()).toEqual({
        'default/c': 'stuck: no persistent volumes available for this claim and no storage class is set',
      })
    })

    it('PROV-4 binds the smaller of two volumes that fit', async () => {
      await start()
      await fixture.createVolume('large', { size: '10Gi', ...AVAILABLE_STATUS })
      await fixture.createVolume('small', AVAILABLE_STATUS)
      await fixture.createClaim('c')
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('small')
      expect(await readPhase('large')).toBe('Available')
    })

    it('PROV-4 prefers a volume reserved by name, and sets no bound-by-controller annotation on it', async () => {
      await start()
      await fixture.createVolume('reserved', { size: '10Gi', claim: { name: 'c' }, ...AVAILABLE_STATUS })
      await fixture.createVolume('free', AVAILABLE_STATUS)
      await fixture.createClaim('c')
      await fixture.settle()
      expect(summarizeBinding(await fixture.getClaim('c'), await fixture.getVolume('reserved'))).toEqual({
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
      await fixture.createVolume('reserved', { claim: { name: 'c', uid: 'another' }, status: { phase: 'Bound' } })
      await fixture.createClaim('c')
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Pending')
      expect(await readPhase('reserved')).toBe('Released')
    })

    it('PROV-4 binds only a volume whose labels match the selector', async () => {
      await start()
      await fixture.createVolume('other', AVAILABLE_STATUS)
      await fixture.createClaim('c', { spec: { selector: { matchLabels: { tier: 'fast' } } } })
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([NO_VOLUME_AVAILABLE])
      await fixture.createVolume('pv', { metadata: { labels: { tier: 'fast' } } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-4 binds a waiting claim to a volume after a matching label is added', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c', {
        spec: { selector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] } },
      })
      await fixture.settle()
      await patchVolume('pv', { metadata: { labels: { tier: 'fast' } } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-4 binds a claim to the volume it names, even though a smaller one is free', async () => {
      await start()
      await fixture.createVolume('named', { size: '10Gi', ...AVAILABLE_STATUS })
      await fixture.createVolume('free', AVAILABLE_STATUS)
      await fixture.createClaim('c', { spec: { volumeName: 'named' } })
      await fixture.settle()
      expect(summarizeBinding(await fixture.getClaim('c'), await fixture.getVolume('named'))).toEqual({
        claim: { phase: 'Bound', volumeName: 'named', capacity: '10Gi', annotations: [BIND_COMPLETED] },
        volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
      })
    })

    it('PROV-4 waits, with an event, for a named volume that does not exist', async () => {
      await start()
      await fixture.createClaim('c', { spec: { volumeName: 'later' } })
      await fixture.settle()
      const message = 'volume "later" not found: the claim names it and waits until it exists'
      expect(fixture.eventsOf('c')).toEqual([`Normal FailedBinding: ${message}`])
      expect(fixture.queueStates()).toEqual({ 'default/c': `stuck: ${message}` })
      await fixture.createVolume('later')
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Bound')
    })

    const MISMATCHES: [string, VolumeFields, ClaimFields, string][] = [
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
    for (const [problem, volume, claim, reason] of MISMATCHES) {
      it(`PROV-4 does not bind a claim to a named volume that ${problem}, and does not set the claimRef of the volume`, async () => {
        await start()
        await fixture.createVolume('pv', { ...volume, ...AVAILABLE_STATUS })
        await fixture.createClaim('c', { ...claim, spec: { volumeName: 'pv', ...claim.spec } })
        await fixture.settle()
        expect((await fixture.getClaim('c')).status).toEqual({ phase: 'Pending' })
        expect(fixture.eventsOf('c')).toEqual([
          `Warning VolumeMismatch: Cannot bind to requested volume "pv": ${reason}`,
        ])
        expect((await fixture.getVolume('pv')).spec?.claimRef).toBeUndefined()
      })
    }

    it('PROV-4 binds a claim to the volume it names, even though its selector does not match', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c', { spec: { volumeName: 'pv', selector: { matchLabels: { a: 'b' } } } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Bound')
    })

    it('PROV-4 waits for a named volume that is bound to another claim, and binds it after it was freed', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('first')
      await fixture.settle()
      await fixture.createClaim('second', { spec: { volumeName: 'pv' } })
      await fixture.settle()
      expect(fixture.eventsOf('second')).toEqual([
        'Warning FailedBinding: volume "pv" already bound to a different claim. It belongs to "default/first".',
      ])
      expect((await fixture.getClaim('second')).status).toEqual({ phase: 'Pending' })
      await fixture.client.patch(
        persistentVolumeClaimKind,
        { namespace: 'default', name: 'first' },
        { type: 'merge', body: { metadata: { finalizers: null } } },
      )
      await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'first' })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Released')
      await patchVolume('pv', { spec: { claimRef: null } })
      await fixture.settle()
      expect((await fixture.getClaim('second')).status?.phase).toBe('Bound')
    })

    it('PROV-14 binds a volume whose deletion was requested only after the annotation is removed', async () => {
      await start()
      const annotations = { [DELETION_REQUESTED_ANNOTATION]: '2026-01-01T00:00:00Z' }
      await fixture.createVolume('pv', { annotations, ...AVAILABLE_STATUS })
      await fixture.createClaim('any')
      await fixture.createClaim('named', { spec: { volumeName: 'pv' } })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Released')
      expect(fixture.eventsOf('pv')[0]).toMatch(/^Warning VolumeHeldBack: .*no claim is bound to it/)
      const mismatch = 'Warning VolumeMismatch: Cannot bind to requested volume "pv": its storage is being deleted'
      expect(new Set(fixture.eventsOf('named'))).toEqual(new Set([mismatch]))
      await patchVolume('pv', { spec: { claimRef: { namespace: 'default', name: 'named' } } })
      await fixture.settle()
      expect(await readVolumeName('any')).toBeUndefined()
      expect((await fixture.getClaim('named')).status?.phase).toBe('Pending')
      await patchVolume('pv', { metadata: { annotations: { [DELETION_REQUESTED_ANNOTATION]: null } } })
      await fixture.settle()
      expect((await fixture.getClaim('named')).status?.phase).toBe('Bound')
    })

    it('PROV-4 leaves a claim unchanged, with an event, if a controller bound it to the volume of another claim', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('first')
      await fixture.settle()
      const annotations = { [BOUND_BY_CONTROLLER]: 'yes' }
      const claimBefore = await fixture.createClaim('second', { spec: { volumeName: 'pv' }, annotations })
      await fixture.settle()
      expect(fixture.eventsOf('second')).toEqual([
        'Warning FailedBinding: volume "pv" already bound to a different claim. It belongs to "default/first".',
      ])
      expect(await fixture.getClaim('second')).toEqual(claimBefore)
    })

    it('PROV-4 compares large sizes exactly', async () => {
      await start()
      const [size, oneByteMore] = ['9223372036854775806', '9223372036854775807'] // equal as floating-point numbers
      await fixture.createVolume('pv', { size, ...AVAILABLE_STATUS })
      await fixture.createClaim('more', { size: oneByteMore })
      await fixture.settle()
      expect((await fixture.getClaim('more')).status?.phase).toBe('Pending')
      await fixture.createClaim('exact', { size })
      await fixture.settle()
      expect(await readVolumeName('exact')).toBe('pv')
    })

    it('PROV-4 binds a waiting claim to a volume that is expanded to a sufficient size', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c', { size: '2Gi' })
      await fixture.settle()
      await patchVolume('pv', { spec: { capacity: { storage: '2Gi' } } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-4 binds each claim of a burst to a different volume', async () => {
      await start()
      const names = Array.from({ length: 50 }, (_, n) => `n${n}`)
      for (const name of names) await fixture.createVolume(name)
      for (const name of names) await fixture.createClaim(name)
      await fixture.settle()
      const boundNames = await Promise.all(names.map(readVolumeName))
      expect(new Set(boundNames)).toEqual(new Set(names))
      for (const [index, name] of boundNames.entries()) {
        expect((await fixture.getVolume(name ?? '')).spec?.claimRef?.name).toBe(names[index])
      }
    })

    it('reconciles a bound volume and its claim only if a change ends their binding', async () => {
      await start()
      await fixture.createClaim('c')
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Bound')
      const { claims, volumes } = fixture.reconciles
      const patch = async (kind: Kind, ref: ObjectRef, body: object, subresource?: 'status') => {
        await fixture.client.patch(kind, ref, { type: 'merge', body }, { subresource })
        await fixture.settle()
      }
      const [volume, claim] = [{ name: 'pv' }, { namespace: 'default', name: 'c' }]
      await patch(persistentVolumeKind, volume, {
        metadata: {
          finalizers: ['external-attacher/disks-example-com'],
          annotations: { 'example.com/changed': 'yes' },
        },
        spec: { capacity: { storage: '3Gi' } },
      })
      await patch(persistentVolumeClaimKind, claim, { status: { capacity: { storage: '3Gi' } } }, 'status')
      expect(fixture.reconciles).toEqual({ claims, volumes })
      await patch(persistentVolumeKind, volume, { status: { phase: 'Available' } }, 'status')
      expect((await fixture.getVolume('pv')).status?.phase).toBe('Bound')
      expect(fixture.reconciles.claims + fixture.reconciles.volumes).toBeGreaterThan(claims + volumes)
    })

    it('binds 200 waiting claims with a few reconciles per claim and per volume', async () => {
      await start()
      const COUNT = 200
      for (let n = 0; n < COUNT; n++) await fixture.createClaim(`c${n}`)
      await fixture.settle()
      const reconcilesBefore = fixture.reconciles.claims
      for (let n = 0; n < COUNT; n++) await fixture.createVolume(`v${n}`)
      await fixture.settle()
      for (let n = 0; n < COUNT; n++) expect(await readVolumeName(`c${n}`)).toBeDefined()

      const perClaim = isAtomic ? 2 : 5
      const perVolume = isAtomic ? 3 : 6
      expect((fixture.reconciles.claims - reconcilesBefore) / COUNT).toBeLessThanOrEqual(perClaim)
      expect(fixture.reconciles.volumes / COUNT).toBeLessThanOrEqual(perVolume)
    })

    it('PROV-2 matches classes that are set by the beta and alpha annotations', async () => {
      await start()
      const beta = { 'volume.beta.kubernetes.io/storage-class': 'gold' }
      const alpha = { 'volume.alpha.kubernetes.io/storage-class': 'silver' }
      await fixture.createVolume('beta', { annotations: beta, ...AVAILABLE_STATUS })
      await fixture.createVolume('alpha', { annotations: alpha, ...AVAILABLE_STATUS })
      await fixture.createClaim('gold-claim', { spec: { storageClassName: 'gold' } })
      await fixture.createClaim('silver-claim', { annotations: alpha })
      await fixture.settle()
      expect(await readVolumeName('gold-claim')).toBe('beta')
      expect(await readVolumeName('silver-claim')).toBe('alpha')
    })

    it('VAC-4 treats an absent and an empty attributes class as equal', async () => {
      await start()
      await fixture.createVolume('plain', AVAILABLE_STATUS)
      const csi = { hostPath: undefined, csi: { driver: 'd.example.com', volumeHandle: 'h' } }
      await fixture.createVolume('gold', { spec: { ...csi, volumeAttributesClassName: 'gold' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('gold-claim', { spec: { volumeAttributesClassName: 'gold' } })
      await fixture.createClaim('empty-claim', { spec: { volumeAttributesClassName: '' } })
      await fixture.settle()
      expect([await readVolumeName('gold-claim'), await readVolumeName('empty-claim')]).toEqual(['gold', 'plain'])
    })

    it("VAC-13 copies the attributes class of a bound volume to the claim's status", async () => {
      await start()
      const spec = {
        hostPath: undefined,
        csi: { driver: 'd.example.com', volumeHandle: 'h' },
        volumeAttributesClassName: 'gold',
      }
      await fixture.createVolume('gold', { spec, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { volumeAttributesClassName: 'gold' } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status).toMatchObject({
        phase: 'Bound',
        currentVolumeAttributesClassName: 'gold',
      })
    })

    it('reports the size before the expansion until the file system is expanded', async () => {
      await start()
      await fixture.createVolume('pv', {
        size: '2Gi',
        annotations: { [PRE_RESIZE_CAPACITY]: '1Gi' },
        ...AVAILABLE_STATUS,
      })
      await fixture.createClaim('c')
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.capacity).toEqual({ storage: '1Gi' })
    })

    it("does not change a bound claim's capacity", async () => {
      await start()
      await fixture.createVolume('pv', { size: '2Gi', ...AVAILABLE_STATUS })
      await fixture.createClaim('c')
      await fixture.settle()
      await patchClaim('c', { status: { capacity: { storage: '1Gi' } } }, 'status')
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.capacity).toEqual({ storage: '1Gi' })
    })
  })

  describe(`delayed binding, ${commits}`, () => {
    it('waits for a pod if the class is WaitForFirstConsumer, even though a volume is free', async () => {
      await start()
      await fixture.createClass('late', DELAYED_CLASS)
      await fixture.createVolume('pv', { spec: { storageClassName: 'late' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { storageClassName: 'late' } })
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([
        'Normal WaitForFirstConsumer: waiting for first consumer to be created before binding',
      ])
      const conditions = [expect.objectContaining({ type: 'ReadyForFirstConsumer', status: 'True' })]
      expect((await fixture.getClaim('c')).status).toEqual({ phase: 'Pending', conditions })
    })

    it('updates ReadyForFirstConsumer when the class appears, disappears and changes its binding mode, and removes it when the claim is bound', async () => {
      await start()
      const readiness = async () => {
        await fixture.settle()
        const condition = (await fixture.getClaim('c')).status?.conditions?.[0]
        return condition && `${condition.status} ${condition.reason}`
      }
      const deleteClass = () => fixture.client.delete(storageClassKind, { name: 'late' })
      await fixture.createClaim('c', { spec: { storageClassName: 'late' } })
      expect(await readiness()).toBeUndefined()
      await fixture.createClass('late', DELAYED_CLASS)
      expect(await readiness()).toBe('True WaitForFirstConsumer')
      await deleteClass()
      expect(await readiness()).toBe('False StorageClassNotFound')
      await fixture.createClass('late', {})
      expect(await readiness()).toBe('False ImmediateBinding')
      await fixture.createVolume('pv', { spec: { storageClassName: 'late' }, ...AVAILABLE_STATUS })
      expect(await readiness()).toBeUndefined()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Bound')
    })

    it('names the pods that the claim waits for in the event', async () => {
      await start()
      await fixture.createClass('late', DELAYED_CLASS)
      await fixture.createClaim('c', { spec: { storageClassName: 'late' } })
      await fixture.settle()
      await fixture.createPod('b', 'c')
      await fixture.settle()
      await fixture.createPod('a', 'c')
      await fixture.createPod('ended', 'c', { phase: 'Succeeded' })
      await fixture.createPod('placed', 'c', { nodeName: 'n' })
      await fixture.settle()
      expect(fixture.eventsOf('c')[1]).toBe('Normal WaitForPodScheduled: waiting for pod b to be scheduled')
      expect(fixture.eventsOf('c').at(-1)).toBe('Normal WaitForPodScheduled: waiting for pods a,b to be scheduled')
    })

    it('records no WaitForPodScheduled for a pod that is scheduled within five seconds', async () => {
      await start()
      await fixture.createClass('late', DELAYED_CLASS)
      await fixture.createClaim('c', { spec: { storageClassName: 'late' } })
      await fixture.settle()
      const reconcileOnce = async () => {
        const { claims } = fixture.reconciles
        await fixture.api.waitUntil(() => fixture.reconciles.claims > claims, 'a reconcile')
      }
      const created = fixture.createPod('p', 'c')
      await reconcileOnce()
      await created
      await fixture.api.clock.advance(2_000)
      const annotations = { 'volume.kubernetes.io/selected-node': 'n' }
      const patch = { type: 'merge', body: { metadata: { annotations } } } as const
      await fixture.client.patch(persistentVolumeClaimKind, { namespace: 'default', name: 'c' }, patch)
      await fixture.settle()
      expect(fixture.eventsOf('c').filter((line) => line.includes('WaitForPodScheduled'))).toEqual([])
    })

    it('PROV-4 binds a reserved volume without waiting for a pod', async () => {
      await start()
      await fixture.createClass('late', DELAYED_CLASS)
      await fixture.createClaim('c', { spec: { storageClassName: 'late' } })
      await fixture.settle()
      await fixture.createVolume('pv', { spec: { storageClassName: 'late' }, claim: { name: 'c' } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-7 requests provisioning after a node was selected, even though a volume is free', async () => {
      await start()
      await fixture.createClass('late', DELAYED_CLASS)
      await fixture.createVolume('pv', { spec: { storageClassName: 'late' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { storageClassName: 'late' }, annotations: { [SELECTED_NODE]: 'n' } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).metadata.annotations).toMatchObject({ [PROVISIONER]: 'disk.example.com' })
      expect(await readPhase('pv')).toBe('Available')
    })
  })

  describe(`classes, ${commits}`, () => {
    it('PROV-7 requests provisioning with both annotations and records an event', async () => {
      await start()
      await fixture.createClass('gold')
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      const claim = await fixture.getClaim('c')
      expect(claim.metadata.annotations).toEqual({
        [PROVISIONER]: 'disk.example.com',
        [PROVISIONER_BETA]: 'disk.example.com',
      })
      expect(claim.status).toEqual({ phase: 'Pending' })
      expect(fixture.eventsOf('c')).toEqual([EXTERNAL_PROVISIONING])
      expect(fixture.queueStates()['default/c']).toBe(
        'stuck: waiting for the provisioner "disk.example.com" to create a volume',
      )
    })

    it('PROV-7 records no event when the provisioner runs in this process', async () => {
      await start({ inProcessProvisioners: [{ name: 'kubernetes.io/host-path', owns: () => false }] })
      await fixture.createClass('own', { provisioner: 'kubernetes.io/host-path' })
      await fixture.createClaim('c', { spec: { storageClassName: 'own' } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).metadata.annotations).toMatchObject({
        [PROVISIONER]: 'kubernetes.io/host-path',
        [PROVISIONER_BETA]: 'kubernetes.io/host-path',
      })
      expect(fixture.eventsOf('c')).toEqual([])
    })

    it('PROV-7 does not request provisioning while a volume of the class is free', async () => {
      await start()
      await fixture.createClass('gold')
      await fixture.createVolume('pv', { spec: { storageClassName: 'gold' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
      expect((await fixture.getClaim('c')).metadata.annotations).not.toHaveProperty([PROVISIONER])
    })

    it('PROV-11 binds a provisioned volume without the bound-by-controller annotation', async () => {
      await start()
      await fixture.createClass('gold')
      const { metadata } = await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      await fixture.createVolume('provisioned', {
        spec: { storageClassName: 'gold', persistentVolumeReclaimPolicy: 'Delete' },
        annotations: { [PROVISIONED_BY]: 'disk.example.com' },
        claim: { name: 'c', uid: metadata.uid },
      })
      await fixture.settle()
      expect(summarizeBinding(await fixture.getClaim('c'), await fixture.getVolume('provisioned'))).toMatchObject({
        claim: { phase: 'Bound', volumeName: 'provisioned' },
        volume: { phase: 'Bound', isOwned: true, annotations: [PROVISIONED_BY] },
      })
    })

    it('PROV-6 reports a missing class, and requests provisioning after the class was created', async () => {
      await start()
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([
        'Warning ProvisioningFailed: storageclass.storage.k8s.io "gold" not found',
      ])
      expect((await fixture.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      await fixture.createClass('gold')
      await fixture.settle()
      expect((await fixture.getClaim('c')).metadata.annotations).toMatchObject({ [PROVISIONER]: 'disk.example.com' })
    })

    it('binds a volume of a class that does not exist', async () => {
      await start()
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      await fixture.createVolume('pv', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('binds a free volume, even though provisioning was requested', async () => {
      await start()
      await fixture.createClass('gold')
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      await fixture.createVolume('pv', { spec: { storageClassName: 'gold' } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-6 reports an unknown in-tree provisioner, and binds a volume of its class', async () => {
      await start()
      await fixture.createClass('manual', { provisioner: 'kubernetes.io/no-provisioner' })
      await fixture.createClaim('c', { spec: { storageClassName: 'manual' } })
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([
        'Warning ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner',
      ])
      await fixture.createVolume('pv', { spec: { storageClassName: 'manual' } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
    })

    it('PROV-6 binds a claim with class "" only to a volume without a class, and never provisions for it', async () => {
      await start()
      await fixture.createClass('gold', { metadata: { annotations: DEFAULT_CLASS_ANNOTATION } })
      await fixture.createVolume('gold-volume', { spec: { storageClassName: 'gold' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { storageClassName: '' } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      expect(fixture.eventsOf('c')).toEqual([NO_VOLUME_AVAILABLE])
      await fixture.createVolume('plain', { size: '10Gi' })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('plain')
    })

    it('PROV-3 assigns a class to waiting claims without a class after it was marked as the default', async () => {
      await start()
      await fixture.createClaim('c')
      await fixture.createClaim('none', { spec: { storageClassName: '' } })
      await fixture.createClaim('annotated', { annotations: { 'volume.beta.kubernetes.io/storage-class': 'x' } })
      await fixture.settle()
      await fixture.createClass('standard')
      await fixture.settle()
      expect((await fixture.getClaim('c')).spec?.storageClassName).toBeUndefined()
      await fixture.client.patch(
        storageClassKind,
        { name: 'standard' },
        { type: 'merge', body: { metadata: { annotations: DEFAULT_CLASS_ANNOTATION } } },
      )
      await fixture.settle()
      expect(await fixture.getClaim('c')).toMatchObject({
        spec: { storageClassName: 'standard' },
        status: { phase: 'Pending' },
        metadata: { annotations: { [PROVISIONER]: 'disk.example.com' } },
      })
      expect((await fixture.getClaim('none')).spec?.storageClassName).toBe('')
      expect((await fixture.getClaim('annotated')).spec?.storageClassName).toBeUndefined()
    })

    it('PROV-3 binds a volume without a class rather than assigning the default class', async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c')
      await fixture.createClass('standard', { metadata: { annotations: DEFAULT_CLASS_ANNOTATION } })
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('pv')
      expect((await fixture.getClaim('c')).spec?.storageClassName).toBeUndefined()
    })

    it('PROV-13 neither binds nor provisions for a claim that is being deleted', async () => {
      await start()
      await fixture.createClass('gold')
      await fixture.createVolume('pv', { spec: { storageClassName: 'gold' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
      await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      await fixture.settle()
      expect((await fixture.getClaim('c')).metadata.annotations ?? {}).toEqual({})
      expect(await readPhase('pv')).toBe('Available')
      expect(fixture.queueStates()['default/c']).toBe('stuck: the claim is being deleted')
    })
  })

  describe(`inconsistent bindings, ${commits}`, () => {
    const createBoundClaim = async () => {
      await start()
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      const claim = await fixture.createClaim('c')
      await fixture.settle()
      return claim
    }

    it('PROV-5 marks a bound claim lost, with one event, when its volume is deleted', async () => {
      await createBoundClaim()
      await patchVolume('pv', { metadata: { finalizers: null } })
      await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status).toEqual({ phase: 'Lost' })
      await patchClaim('c', { metadata: { labels: { changed: 'yes' } } })
      await fixture.settle()
      expect(fixture.eventsOf('c')).toEqual([
        'Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
      ])
    })

    it('PROV-5 marks a bound claim lost when its volumeName was removed', async () => {
      await start()
      await fixture.createClaim('c', { annotations: { [BIND_COMPLETED]: 'yes' }, status: { phase: 'Bound' } })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Lost')
      expect(fixture.eventsOf('c')).toEqual([
        'Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
      ])
    })

    it('PROV-5 marks a claim lost whose volume is bound to another claim', async () => {
      await createBoundClaim()
      await fixture.createClaim('second', { spec: { volumeName: 'pv' }, annotations: { [BIND_COMPLETED]: 'yes' } })
      await fixture.settle()
      expect((await fixture.getClaim('second')).status?.phase).toBe('Lost')
      expect(fixture.eventsOf('second')).toEqual([
        'Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly',
      ])
      expect((await fixture.getVolume('pv')).spec?.claimRef?.name).toBe('c')
    })

    it('PROV-5 restores a removed claimRef', async () => {
      const { metadata } = await createBoundClaim()
      await patchVolume('pv', { spec: { claimRef: null } })
      await fixture.settle()
      expect((await fixture.getVolume('pv')).spec?.claimRef?.uid).toBe(metadata.uid)
      expect(await readPhase('pv')).toBe('Bound')
    })

    it('PROV-5 binds a lost claim again when its volume is recreated', async () => {
      await start()
      await fixture.createClaim('c', {
        spec: { volumeName: 'pv' },
        annotations: { [BIND_COMPLETED]: 'yes' },
        status: { phase: 'Bound' },
      })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Lost')
      await fixture.createVolume('pv')
      await fixture.settle()
      expect((await fixture.getClaim('c')).status).toMatchObject({ phase: 'Bound', capacity: { storage: '1Gi' } })
    })

    it('PROV-5 frees the second of two volumes that a controller bound to one claim', async () => {
      await start()
      const { metadata } = await fixture.createClaim('c')
      for (const name of ['a', 'b']) {
        const annotations = { [BOUND_BY_CONTROLLER]: 'yes' }
        await fixture.createVolume(name, { annotations, claim: { name: 'c', uid: metadata.uid }, ...AVAILABLE_STATUS })
      }
      await fixture.settle()
      expect(await readVolumeName('c')).toBe('a')
      const freedVolume = await fixture.getVolume('b')
      expect([freedVolume.spec?.claimRef, freedVolume.metadata.annotations ?? {}, freedVolume.status?.phase]).toEqual([
        undefined,
        {},
        'Available',
      ])
    })

    it('PROV-13 keeps a volume reserved by name if its claim is bound to another volume', async () => {
      const { metadata } = await createBoundClaim()
      await fixture.createVolume('reserved', { claim: { name: 'c', uid: metadata.uid } })
      await fixture.settle()
      const volume = await fixture.getVolume('reserved')
      expect(volume.status?.phase).toBe('Available')
      expect(volume.spec?.claimRef).toEqual({ namespace: 'default', name: 'c' })
    })

    it('PROV-13 releases a provisioned volume whose claim is bound to another volume', async () => {
      const { metadata } = await createBoundClaim()
      await fixture.createVolume('late', {
        claim: { name: 'c', uid: metadata.uid },
        annotations: { [PROVISIONED_BY]: 'disk.example.com' },
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
      })
      await fixture.settle()
      expect(await readPhase('late')).toBe('Released')
      expect(fixture.queueStates().late).toBe(
        'stuck: the volume is released: waiting for the provisioner "disk.example.com" to delete it',
      )
    })

    it('PROV-4 reports a mismatch of volume modes on both objects', async () => {
      await start()
      const { metadata } = await fixture.createClaim('c', { spec: { volumeMode: 'Block' } })
      await fixture.createVolume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await fixture.settle()
      expect(fixture.eventsOf('pv')).toContain(
        'Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
      )
      expect(fixture.eventsOf('c')).toContain(
        'Warning VolumeMismatch: Cannot bind PersistentVolume "pv" to requested PersistentVolumeClaim due to incompatible volumeMode.',
      )
      expect(await readVolumeName('c')).toBeUndefined()
    })
  })

  describe(`released volumes, ${commits}`, () => {
    const DELETED_CLAIM = { name: 'gone', uid: 'gone' }
    const BOUND_STATUS = { status: { phase: 'Bound' } }

    it('PROV-15 releases a Retain volume whose claim was deleted, and binds it again only after its claimRef was removed', async () => {
      await start()
      await fixture.createVolume('pv', { claim: DELETED_CLAIM, ...BOUND_STATUS })
      await fixture.createClaim('waits')
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Released')
      expect((await fixture.getVolume('pv')).spec?.claimRef?.uid).toBe('gone')
      expect(fixture.queueStates().pv).toBe(
        'stuck: the volume is released and its reclaim policy is Retain: no claim can use its data until its claimRef is removed',
      )
      expect(await readVolumeName('waits')).toBeUndefined()
      await patchVolume('pv', { spec: { claimRef: null } })
      await fixture.settle()
      expect(await readVolumeName('waits')).toBe('pv')
    })

    it('PROV-14 releases the volume of a deleted claim, and then marks it failed if no provisioner can delete it', async () => {
      await start()
      await fixture.createVolume('pv', { spec: { persistentVolumeReclaimPolicy: 'Delete' }, ...AVAILABLE_STATUS })
      await fixture.createClaim('c')
      await fixture.settle()
      await patchClaim('c', { metadata: { finalizers: null } })
      await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      const phases: (string | undefined)[] = []
      const watch = await fixture.api.watch('/api/v1/persistentvolumes?watch=1')
      await fixture.settle()
      for (const { object } of watch.events) phases.push(object.status?.phase)
      watch.close()
      expect(phases.slice(-2)).toEqual(['Released', 'Failed'])
    })

    it('PROV-20 marks a volume without a deleter as failed, with the reason', async () => {
      await start()
      await fixture.createVolume('pv', {
        claim: DELETED_CLAIM,
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
        ...BOUND_STATUS,
      })
      await fixture.settle()
      const message =
        'error getting deleter volume plugin for volume "pv": no deletable volume plugin matched; back up its data if it is needed, delete its storage manually, which deletes the data, then delete the volume'
      expect((await fixture.getVolume('pv')).status).toMatchObject({ phase: 'Failed', message })
      await patchVolume('pv', { metadata: { labels: { changed: 'yes' } } })
      await fixture.settle()
      expect(fixture.eventsOf('pv')).toEqual([`Warning VolumeFailedDelete: ${message}`])
    })

    const DELEGATED_CASES: [string, VolumeFields][] = [
      ['an external provisioner created it', { annotations: { [PROVISIONED_BY]: 'disk.example.com' } }],
      ['a provisioner in this process created it', { annotations: { [PROVISIONED_BY]: 'kubernetes.io/own' } }],
      ['its source is a CSI driver', { spec: { hostPath: undefined, csi: { driver: 'd.io', volumeHandle: 'h' } } }],
      ['it was migrated to a CSI driver', { annotations: { [MIGRATED_TO]: 'd.io' } }],
      [
        'a provisioner in this process owns its kind of source',
        { spec: { hostPath: undefined, nfs: { server: 's', path: '/' } } },
      ],
    ]
    for (const [condition, fields] of DELEGATED_CASES) {
      it(`PROV-14 leaves the deletion of a released volume to its provisioner if ${condition}`, async () => {
        await start({
          inProcessProvisioners: [{ name: 'kubernetes.io/own', owns: ({ spec }) => spec?.nfs !== undefined }],
        })
        const spec = { persistentVolumeReclaimPolicy: 'Delete', ...fields.spec }
        await fixture.createVolume('pv', { claim: DELETED_CLAIM, ...BOUND_STATUS, ...fields, spec })
        await fixture.settle()
        expect(await readPhase('pv')).toBe('Released')
        expect(fixture.eventsOf('pv')).toEqual([])
        expect(fixture.queueStates().pv).toMatch(
          /^stuck: the volume is released: waiting for the provisioner ".*" to delete it$/,
        )
      })
    }

    it('PROV-14 marks a volume of a removed in-tree provisioner as failed', async () => {
      await start()
      await fixture.createVolume('pv', {
        claim: DELETED_CLAIM,
        annotations: { [PROVISIONED_BY]: 'kubernetes.io/aws-ebs' },
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
        ...BOUND_STATUS,
      })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Failed')
      expect(fixture.eventsOf('pv')[0]).toContain('no volume plugin matched name: kubernetes.io/aws-ebs')
    })

    it('PROV-14 marks a volume that is being deleted as failed if its claim was deleted and no provisioner can delete it', async () => {
      await start()
      await fixture.createVolume('pv', {
        claim: DELETED_CLAIM,
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
        ...BOUND_STATUS,
      })
      await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Failed')
    })

    it('PROV-14 waits for pods that use a volume with the policy Recycle, then reports that there is no recycler', async () => {
      await start()
      await fixture.createVolume('pv', {
        claim: DELETED_CLAIM,
        spec: { persistentVolumeReclaimPolicy: 'Recycle' },
        ...BOUND_STATUS,
      })
      await fixture.createPod('a', 'gone', { nodeName: 'n', phase: 'Running' })
      await fixture.createPod('b', 'gone')
      await fixture.createPod('ended', 'gone', { nodeName: 'n', phase: 'Succeeded' })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Released')
      expect(fixture.eventsOf('pv')).toEqual([
        'Normal VolumeFailedRecycle: Volume is used by pods: default/a,default/b',
      ])
      for (const name of ['a', 'b']) {
        await fixture.api.patch(
          `/api/v1/namespaces/default/pods/${name}/status`,
          { status: { phase: 'Failed' } },
          'merge',
        )
      }
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Failed')
      expect(fixture.eventsOf('pv').at(-1)).toMatch(
        /^Warning VolumeFailedRecycle: No recycler plugin found for the volume!/,
      )
    })

    it('PROV-5 keeps the volume of a claim that is not in the cache yet', async () => {
      const hiddenNames = { claim: '' }
      await start({ wrapClient: (client) => hideFromWatches(client, hiddenNames) })
      hiddenNames.claim = 'c'
      const { metadata } = await fixture.createClaim('c', { spec: { volumeName: 'pv' } })
      await fixture.createVolume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Bound')
    })

    it("PROV-5 keeps a claim's volume while the cache contains a deleted claim with the same name", async () => {
      const hiddenNames = { claim: '' }
      await start({ wrapClient: (client) => hideFromWatches(client, hiddenNames) })
      await fixture.createClaim('c')
      await fixture.settle()
      hiddenNames.claim = 'c'
      await patchClaim('c', { metadata: { finalizers: null } })
      await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
      const { metadata } = await fixture.createClaim('c', { spec: { volumeName: 'pv' } })
      await fixture.createVolume('pv', { claim: { name: 'c', uid: metadata.uid } })
      await fixture.settle()
      expect(await readPhase('pv')).toBe('Bound')
    })

    it('PROV-5 does not mark a claim lost whose volume is not in the cache yet', async () => {
      const hiddenNames = { claim: '', volume: 'pv' }
      await start({ wrapClient: (client) => hideFromWatches(client, hiddenNames) })
      const { metadata } = await fixture.createClaim('c', {
        spec: { volumeName: 'pv' },
        annotations: { [BIND_COMPLETED]: 'yes' },
        status: { phase: 'Bound' },
      })
      await fixture.createVolume('pv', { claim: { name: 'c', uid: metadata.uid }, ...BOUND_STATUS })
      await fixture.settle()
      expect((await fixture.getClaim('c')).status?.phase).toBe('Bound')
      expect(fixture.eventsOf('c')).toEqual([])
    })
  })
}

describe('events', () => {
  it('are stored, with the component persistentvolume-controller', async () => {
    fixture = await createBindingFixture({ shouldStoreEvents: true })
    await fixture.createClaim('c')
    await fixture.settle()
    const { json } = await fixture.api.get('/api/v1/namespaces/default/events')
    expect(json.items).toHaveLength(1)
    expect(json.items[0]).toMatchObject({
      involvedObject: { kind: 'PersistentVolumeClaim', name: 'c' },
      reason: 'FailedBinding',
      type: 'Normal',
      source: { component: 'persistentvolume-controller' },
    })
  })
})
