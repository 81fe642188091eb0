import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { type ApiError, forbidden, unavailable } from '../../api/status-error.ts'
import { PROVISIONED_BY, PROVISIONER, SELECTED_NODE } from '../../volumes/names.ts'
import { createProvisioningMetrics } from './metrics.ts'
import { createProvisioningFixture, DISKS, type ProvisioningFixture } from './provisioning.fixture.ts'

const INTENT = `provisioning.stowage.dev/${DISKS}`

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
})
afterEach(() => fixture.close())

const volumeNameOf = ({ metadata }: { metadata: { uid?: string } }) => `pvc-${metadata.uid}`
const hasIntent = async (name: string) => (await fixture.claim(name))?.metadata.finalizers?.includes(INTENT) ?? false
const ref = (name: string) => ({ namespace: 'default', name })
const messages = (reason: string) =>
  fixture.events.filter((event) => event.reason === reason).map(({ message }) => message)
const deleteClaim = (name: string) => fixture.client.delete(persistentVolumeClaimKind, ref(name))
const isDeleted = (name: string) => async () =>
  (await fixture.claim(name)) === undefined &&
  (await fixture.volumes()).length === 0 &&
  fixture.storage.assets.size === 0

/** Returns a promise and a function that resolves it. */
function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('reconcileClaim for a claim of this provisioner', () => {
  it('PROV-11 creates a volume with claimRef, class, size, policy, provisioner and finalizer', async () => {
    await fixture.createClass('fast', { mountOptions: ['noatime'], reclaimPolicy: 'Delete' })
    const claim = await fixture.createClaim('data', { spec: { accessModes: ['ReadWriteMany'], volumeMode: 'Block' } })
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    const volume = await fixture.volume(volumeNameOf(claim))
    expect(volume).toMatchObject({
      metadata: { annotations: { [PROVISIONED_BY]: DISKS } },
      spec: {
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', ...ref('data'), uid: claim.metadata.uid },
        storageClassName: 'fast',
        accessModes: ['ReadWriteMany'],
        volumeMode: 'Block',
        capacity: { storage: '1Gi' },
        mountOptions: ['noatime'],
        persistentVolumeReclaimPolicy: 'Delete',
        csi: { driver: DISKS },
      },
    })
    expect(volume?.spec?.claimRef?.resourceVersion).toBeTruthy()
    expect(volume?.metadata.finalizers).toContain('external-provisioner.volume.kubernetes.io/finalizer')
    await fixture.waitUntil(async () => !(await hasIntent('data')), 'the intent to be removed')
    expect(fixture.events.at(-1)).toMatchObject({
      type: 'Normal',
      reason: 'ProvisioningSucceeded',
      message: `Successfully provisioned volume ${volumeNameOf(claim)}`,
    })
    expect(fixture.storage.provisions).toHaveLength(1)
    expect(fixture.storage.forgottenUids).toContain(claim.metadata.uid)
  })

  it('records an event for a call that takes a second', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.eventReasons().includes('Provisioning'), 'the event')
    expect(fixture.storage.assets.size).toBe(0)
    expect(messages('Provisioning')).toEqual(['External provisioner is provisioning volume for claim "default/data"'])
    open()
    await fixture.waitUntil(() => fixture.eventReasons().includes('ProvisioningSucceeded'), 'the volume to be created')
    expect(messages('Provisioning')).toHaveLength(1)
  })

  it('does not count the time before the storage is called, in which the intents of a burst are recorded', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    const provisioner = fixture.storage.provisioner()
    let isWaiting = false
    fixture.start({
      provisioner: {
        ...provisioner,
        provision: async (request, signal, beforeCreate) => {
          isWaiting = true
          await opened
          return provisioner.provision(request, signal, beforeCreate)
        },
      },
    })
    await fixture.waitUntil(() => isWaiting, 'the provision call')
    let turns = 0
    await fixture.waitUntil(() => ++turns > 200, 'several seconds to pass')
    open()
    await fixture.waitUntil(() => fixture.eventReasons().includes('ProvisioningSucceeded'), 'the volume to be created')
    expect(messages('Provisioning')).toEqual([])
  })

  it('PROV-12 sets the intent before the storage is called', async () => {
    await fixture.createClass('fast')
    let hadIntent: boolean | undefined
    await fixture.createClaim('data')
    const provisioner = fixture.storage.provisioner()
    fixture.start({
      provisioner: {
        ...provisioner,
        provision: (request, signal, beforeCreate) =>
          provisioner.provision(request, signal, async () => {
            await beforeCreate?.()
            hadIntent ??= await hasIntent('data')
          }),
      },
    })
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    expect(hadIntent).toBe(true)
  })

  it('PROV-8 uses the finalizer and the event of in-process provisioners', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.start({ options: { inProcess: true } })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect((await fixture.volume(volumeNameOf(claim)))?.metadata.finalizers).toContain('kubernetes.io/pv-controller')
    expect(fixture.events.map(({ message }) => message)).toEqual([
      `Successfully provisioned volume ${volumeNameOf(claim)} using ${DISKS}`,
    ])
  })

  it('PROV-11 names the volume with the configured prefix and length of the uid', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.start({ options: { volumeNamePrefix: 'vol', volumeNameUuidLength: 8 } })
    const name = `vol-${claim.metadata.uid?.replaceAll('-', '').slice(0, 8)}`
    await fixture.waitUntil(() => fixture.volume(name), 'the volume to be created')
    expect(fixture.storage.provisions[0]?.volumeName).toBe(name)
  })

  it('PROV-11 sets no provisioner finalizer on volumes of a Retain class', async () => {
    await fixture.createClass('fast', { reclaimPolicy: 'Retain' })
    const claim = await fixture.createClaim('data')
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect((await fixture.volume(volumeNameOf(claim)))?.metadata.finalizers).toEqual(['kubernetes.io/pv-protection'])
  })
})

describe('reconcileClaim when it selects claims', () => {
  it('PROV-9 ignores bound claims and claims of other provisioners', async () => {
    await fixture.createClass('fast')
    await fixture.createClass('foreign', { provisioner: 'tapes.example.com' })
    await fixture.createClaim('foreign', { storageClassName: 'foreign', provisioner: 'tapes.example.com' })
    await fixture.createClaim('unassigned', { annotations: { [PROVISIONER]: '' } })
    await fixture.createClaim('bound', { spec: { volumeName: 'old' } })
    const ownClaim = await fixture.createClaim('own')
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(ownClaim)), 'the own volume to be created')
    await fixture.settle()
    expect(fixture.storage.provisions.map(({ claim }) => claim.metadata.name)).toEqual(['own'])
    for (const name of ['foreign', 'unassigned', 'bound']) {
      expect((await fixture.claim(name))?.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    }
    expect(new Set(fixture.events.map(({ objectName }) => objectName))).toEqual(new Set(['own']))
  })

  it('PROV-9 ignores a claim with its annotation whose class names another provisioner', async () => {
    await fixture.createClass('fast', { provisioner: 'unknown.example.com' })
    await fixture.createClaim('data')
    fixture.start()
    await fixture.settle()
    expect(fixture.storage.provisions).toEqual([])
    expect(fixture.events).toEqual([])
  })

  it('PROV-9 reports a missing class and continues after it is created', async () => {
    const claim = await fixture.createClaim('data')
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    expect(messages('ProvisioningFailed')).toEqual([
      'storageclass.storage.k8s.io "fast" not found: create it, or recreate the claim with an existing class',
    ])
    expect(await hasIntent('data')).toBe(false)
    await fixture.createClass('fast')
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
  })

  it('CAP-13 provisions a claim of a WaitForFirstConsumer class after a node is selected', async () => {
    await fixture.createClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await fixture.createClaim('data')
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    expect(instance.queueState('default/data')?.message).toContain('no node has been selected')
    expect(fixture.events).toEqual([])
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'node-7' } } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions[0]?.selectedNode).toBe('node-7')
  })

  it('PROV-9 does not change a claim that the instance does not accept', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    await fixture.client.create(persistentVolumeClaimKind, {
      metadata: { ...ref('started'), annotations: { [PROVISIONER]: DISKS }, finalizers: [INTENT] },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        resources: { requests: { storage: '1Gi' } },
      },
    })
    fixture.start({ provisioner: fixture.storage.provisioner(DISKS, { accepts: async () => false }) })
    await fixture.settle()
    expect(fixture.storage.provisions).toEqual([])
    expect(await hasIntent('data')).toBe(false)
    expect(await hasIntent('started')).toBe(true)
  })

  it('PROV-3 uses the class that the claim names if two classes are the default', async () => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    for (const name of ['fast', 'slow']) await fixture.createClass(name, { metadata: { name, annotations } })
    await fixture.createClaim('data', { storageClassName: 'slow' })
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    expect((await fixture.volumes())[0]?.spec?.storageClassName).toBe('slow')
    expect(fixture.storage.provisions.map(({ storageClass }) => storageClass.metadata.name)).toEqual(['slow'])
  })
})

describe('reconcileClaim after a failed attempt', () => {
  it('PROV-8 records an event and retries with backoff', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    for (let i = 0; i < 3; i++) fixture.storage.script.push({ fails: 'final', message: `no ${i}` })
    const instance = fixture.start()
    const delaysMs: number[] = []
    for (let i = 0; i < 3; i++) {
      await fixture.settle()
      const queueState = instance.queueState('default/data')
      expect(queueState).toMatchObject({ is: 'waiting', message: `no ${i}` })
      delaysMs.push(queueState!.nextAtMs! - fixture.apiServer.clock.nowMs())
      await fixture.apiServer.clock.advance(delaysMs[i]!)
    }
    expect(delaysMs).toEqual([750, 1_500, 3_000]) // 1 s, doubling, with a random factor of 0.75
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(messages('ProvisioningFailed')).toEqual(['no 0', 'no 1', 'no 2'])
    expect(fixture.eventReasons().filter((reason) => reason === 'Provisioning')).toHaveLength(3) // once per retry
  })

  it('PROV-10 retries an infeasible request after five minutes, or when the class is replaced', async () => {
    const originalClass = await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'infeasible', message: 'bad parameter' }, { fails: 'infeasible' })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    expect(messages('ProvisioningFailed')).toEqual([
      'Volume provisioning failed with infeasible error. Retries will be delayed. bad parameter',
    ])
    const body = { metadata: { labels: { touched: 'yes' } } }
    await fixture.client.patch(storageClassKind, { name: 'fast' }, { type: 'merge', body })
    await fixture.settle()
    await fixture.apiServer.clock.advance(200_000)
    await fixture.settle()
    expect(fixture.storage.provisions).toHaveLength(1)
    await fixture.apiServer.clock.advance(100_001)
    await fixture.settle()
    expect(fixture.storage.provisions).toHaveLength(2)
    await fixture.client.delete(storageClassKind, { name: 'fast' })
    await fixture.createClass('fast', { parameters: { good: 'yes' } })
    await fixture.settle()
    expect(fixture.storage.provisions[2]?.storageClass.metadata.uid).not.toBe(originalClass.metadata.uid)
    expect(await fixture.volumes()).toHaveLength(1)
  })

  it('CAP-13 clears the selected node on reschedule and continues with the next node', async () => {
    await fixture.createClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await fixture.createClaim('data', { annotations: { [SELECTED_NODE]: 'full' } })
    fixture.storage.script.push({ fails: 'reschedule', message: 'no room' })
    fixture.start()
    await fixture.waitUntil(
      async () => (await fixture.claim('data'))?.metadata.annotations?.[SELECTED_NODE] === undefined,
      'the selected node to be cleared',
    )
    await fixture.settle()
    expect(messages('ProvisioningFailed')).toEqual(['no room'])
    expect(await hasIntent('data')).toBe(false)
    expect(fixture.storage.provisions).toHaveLength(1)
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'roomy' } } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions[1]?.selectedNode).toBe('roomy')
  })

  it('PROV-12 clears a selected node that was deleted, but keeps the intent if an earlier process may have created a volume', async () => {
    await fixture.createClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await fixture.createClaim('data', { annotations: { [SELECTED_NODE]: 'gone' } })
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const first = fixture.start()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await first.stop()
    fixture.storage.script.push({ fails: 'reschedule', isNotCalled: true, message: 'no such node' })
    fixture.start()
    await fixture.waitUntil(
      async () => (await fixture.claim('data'))?.metadata.annotations?.[SELECTED_NODE] === undefined,
      'the selected node to be cleared',
    )
    expect(await hasIntent('data')).toBe(true)
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'other' } } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions[2]?.selectedNode).toBe('other')
    expect(await hasIntent('data')).toBe(false)
    expect(fixture.storage.assets.size).toBe(1)
  })

  describe('if the selected node is lost', () => {
    const lostNodes = new Set<string>()
    const start = () =>
      fixture.start({
        provisioner: fixture.storage.provisioner(DISKS, { isLostNode: (name) => lostNodes.has(name) }),
      })
    const selectNode = (name: string | null) =>
      fixture.client.patch(persistentVolumeClaimKind, ref('data'), {
        type: 'merge',
        body: { metadata: { annotations: { [SELECTED_NODE]: name } } },
      })
    beforeEach(async () => {
      lostNodes.clear()
      await fixture.createClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    })

    it('PLUS-11 clears the selected node without a call', async () => {
      lostNodes.add('gone')
      const claim = await fixture.createClaim('data', { annotations: { [SELECTED_NODE]: 'gone' } })
      start()
      await fixture.waitUntil(
        async () => (await fixture.claim('data'))?.metadata.annotations?.[SELECTED_NODE] === undefined,
        'the selected node to be cleared',
      )
      await fixture.settle()
      expect(fixture.storage.provisions).toEqual([])
      expect(await hasIntent('data')).toBe(false)
      await selectNode('other')
      await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    })

    it('PLUS-11 does not repeat the unanswered call for it, and keeps the intent until another node has the volume', async () => {
      const claim = await fixture.createClaim('data', { annotations: { [SELECTED_NODE]: 'gone' } })
      fixture.storage.script.push({ fails: 'unfinished' })
      const { queueState } = start()
      await fixture.waitUntil(() => queueState('default/data')?.is === 'waiting', 'the claim to wait')
      lostNodes.add('gone')
      await selectNode('other') // by the lost-node controller and the scheduler
      await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
      expect(fixture.storage.provisions.map(({ selectedNode }) => selectedNode)).toEqual(['gone', 'other'])
      expect(await hasIntent('data')).toBe(false)
      expect(fixture.storage.assets.size).toBe(1)
    })

    it('PLUS-11 repeats the unanswered call for it while the claim is being deleted', async () => {
      await fixture.createClaim('data', { annotations: { [SELECTED_NODE]: 'gone' } })
      fixture.storage.script.push({ fails: 'unfinished', creates: true })
      const { queueState } = start()
      await fixture.waitUntil(() => queueState('default/data')?.is === 'waiting', 'the claim to wait')
      lostNodes.add('gone')
      await deleteClaim('data')
      await fixture.waitUntil(async () => !(await hasIntent('data')), 'the intent to be removed')
      expect(fixture.storage.provisions.map(({ selectedNode }) => selectedNode)).toEqual(['gone', 'gone'])
    })
  })

  it('PROV-12 keeps the intent of an earlier process if the request is rejected before the call', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const first = fixture.start()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await first.stop()
    await fixture.client.delete(persistentVolumeClaimKind, ref('data'))
    fixture.storage.script.push({ fails: 'final', isNotCalled: true })
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created for the deleted claim')
    expect(fixture.storage.provisions).toHaveLength(3)
  })

  it('PROV-12 sets no intent if the request is rejected before the call', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    for (let i = 0; i < 9; i++) fixture.storage.script.push({ fails: 'final', isNotCalled: true })
    const first = fixture.start()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    expect(await hasIntent('data')).toBe(false)
    await first.stop()
    fixture.start()
    await deleteClaim('data')
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
  })

  it('PROV-12 does not repeat a call if only a stale cache contains the intent', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const patchMetadata = (metadata: object) =>
      fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body: { metadata } })
    await patchMetadata({ finalizers: [INTENT] })
    await deleteClaim('data')
    const accepts = async () => {
      if (await fixture.claim('data')) await patchMetadata({ finalizers: null })
      return true
    }
    fixture.start({ provisioner: fixture.storage.provisioner(DISKS, { accepts }) })
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted')
    await fixture.settle()
    expect(fixture.storage.provisions).toEqual([])
  })

  it('PROV-12 reads the claim after a conflict instead of retrying with a stale cache', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    let reads = 0
    let patches = 0
    fixture.start({
      async intercept(verb, [kind]) {
        if (kind !== persistentVolumeClaimKind) return
        if (verb === 'get') reads++
        if (verb !== 'patch' || ++patches > 1) return
        const body = { metadata: { labels: { touched: 'yes' } } }
        await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
      },
    })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect({ reads, patches }).toEqual({ reads: 1, patches: 2 })
  })

  it('treats reschedule as final without a selected node', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'reschedule' })
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions).toHaveLength(2)
  })

  it('PROV-12 repeats the unchanged request if the result is unknown and the class was deleted', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await fixture.client.delete(storageClassKind, { name: 'fast' })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions).toHaveLength(2)
    expect(fixture.storage.provisions[1]).toBe(fixture.storage.provisions[0])
  })

  it('PROV-12 treats the result as unknown if the provisioner throws', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ throws: new Error('a bug'), creates: true })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    expect(messages('ProvisioningFailed')).toEqual(['a bug'])
    await deleteClaim('data')
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    expect(fixture.storage.deletes).toHaveLength(1)
  })

  it('PROV-8 reports a call that exceeds its timeout, counts it once and awaits it', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    const provisioner = fixture.storage.provisioner()
    let reportOverdue: ((message: string) => void) | undefined
    const registry = new Registry()
    fixture.start({
      provisioningMetrics: createProvisioningMetrics(registry),
      provisioner: {
        ...provisioner,
        provision(request, signal, beforeCreate, onOverdue) {
          reportOverdue = onOverdue
          return provisioner.provision(request, signal, beforeCreate)
        },
      },
    })
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    reportOverdue?.('did not finish within the timeout of 600 s')
    reportOverdue?.('did not finish within the timeout of 600 s')
    expect(messages('ProvisioningFailed')).toEqual(Array(2).fill('did not finish within the timeout of 600 s'))
    expect(await registry.metrics()).toMatch(/provision_failed_total\{class="fast",source=""\} 1$/m)
    open()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions).toHaveLength(1)
  })

  it('records no failure and does not retry if the provisioner ignores the claim', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ ignores: true })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await fixture.settle()
    await fixture.apiServer.clock.advance(600_000)
    expect(fixture.eventReasons()).toEqual([])
    expect(await hasIntent('data')).toBe(false)
    expect(fixture.storage.provisions).toHaveLength(1)
  })

  it('PROV-10 records and retries an unsupported selector', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data', { spec: { selector: { matchLabels: { region: 'north' } } } })
    for (let i = 0; i < 2; i++)
      fixture.storage.script.push({ fails: 'final', message: 'claim Selector is not supported' })
    fixture.storage.script.push({ labels: { region: 'north' } })
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    expect(messages('ProvisioningFailed')).toEqual(Array(2).fill('claim Selector is not supported'))
    expect((await fixture.volumes())[0]?.metadata.labels).toEqual({ region: 'north' })
  })
})

describe('reconcileClaim for a claim whose volume does not satisfy it', () => {
  it.each([
    ['that is smaller than the request', { size: '10Mi' }, {}, 'it has 10Mi, but the claim requests 1024Mi'],
    [
      'that is a byte smaller than the request',
      { size: '1073741823' },
      {},
      'it has 1073741823 bytes, but the claim requests 1073741824 bytes',
    ],
    [
      'without the labels of the selector',
      {},
      { selector: { matchLabels: { region: 'north' } } },
      "its labels do not match the claim's selector",
    ],
  ])(
    'PROV-11 deletes and reports a volume %s and provisions the claim again',
    async (_title, result, spec, mismatch) => {
      await fixture.createClass('fast')
      const claim = await fixture.createClaim('data', { spec })
      fixture.storage.script.push(result, { labels: { region: 'north' } })
      fixture.start()
      await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
      expect(messages('ProvisioningFailed')).toEqual([
        `Volume "${volumeNameOf(claim)}" does not satisfy the claim: ${mismatch}. The volume is deleted.`,
      ])
      expect(fixture.storage.deletes).toHaveLength(1)
      expect([...fixture.storage.assets.values()]).toEqual(['1Gi'])
    },
  )

  it('PROV-13 deletes the volume if the claim is deleted during the call', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    for (let i = 0; i < 3; i++) fixture.storage.script.push({ size: '10Mi', after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await deleteClaim('data')
    open()
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    expect(fixture.storage.provisions).toHaveLength(1)
  })
})

describe('reconcileClaim for a claim that changes during provisioning', () => {
  it('PROV-13 creates the PV of a deleted claim, so that the volume is released and deleted', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await deleteClaim('data')
    await fixture.runOtherControllers()
    expect(await hasIntent('data')).toBe(true)
    open()
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    expect(fixture.storage.deletes).toHaveLength(1)
  })

  it('PROV-13 releases a deleted claim immediately if no volume was created', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened, fails: 'final' })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await deleteClaim('data')
    await fixture.runOtherControllers()
    open()
    await fixture.settle()
    expect(await fixture.claim('data')).toBeUndefined()
    expect(fixture.storage.provisions).toHaveLength(1)
  })

  it('PROV-13 releases a claim that is deleted between two attempts without a volume', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'final' })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    expect(await hasIntent('data')).toBe(true)
    await deleteClaim('data')
    await fixture.runOtherControllers()
    await fixture.settle()
    expect(await fixture.claim('data')).toBeUndefined()
    expect(fixture.storage.provisions).toHaveLength(1)
  })

  it('PROV-13 finds and deletes the volume of a claim that is deleted between two attempts with an unknown result', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true }, { fails: 'unfinished' }, { fails: 'noChange' })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await deleteClaim('data')
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    expect(fixture.storage.provisions).toHaveLength(4)
  })

  it.each(['unfinished', 'noChange'] as const)(
    'PROV-13 records an event with a remedy if the claim is deleted and the storage does not respond (%s)',
    async (fails) => {
      await fixture.createClass('fast')
      const claim = await fixture.createClaim('data')
      const errorMessage = `rpc error: desc = ${'hung '.repeat(300)}`
      fixture.storage.script.push({ fails: 'unfinished', message: 'hung' })
      for (let i = 0; i < 3; i++) fixture.storage.script.push({ fails, message: errorMessage })
      const instance = fixture.start()
      await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
      expect(messages('ProvisioningFailed')).toEqual(['hung'])
      await deleteClaim('data')
      await fixture.waitUntil(() => messages('ProvisioningFailed').length > 1, 'the event to be recorded')
      const message = messages('ProvisioningFailed')[1]!
      expect(message).toMatch(/^rpc error: desc = hung hung/)
      expect(message).toContain('The claim is kept until it is known whether its volume exists')
      const remedy = `look for "${volumeNameOf(claim)}" in the storage, delete it there with its data, and remove the finalizer "${INTENT}" from the claim.`
      expect(message.endsWith(remedy)).toBe(true)
      expect(Buffer.byteLength(message)).toBeLessThan(1_024) // the limit for an event message
      await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    },
  )

  it('PROV-13 records no remedy if the claim is deleted and no volume exists', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened, fails: 'final', message: 'full' })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await deleteClaim('data')
    await fixture.settle()
    open()
    await fixture.waitUntil(() => messages('ProvisioningFailed').length > 0, 'the event to be recorded')
    expect(messages('ProvisioningFailed')).toEqual(['full'])
  })

  it('PROV-13 finds and deletes the volume of a deleted claim whose intent a user removed', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    const body = { metadata: { finalizers: null } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await deleteClaim('data')
    const recreated = await fixture.createClaim('data') // a new claim of the same name
    const isReclaimed = async () => !(await fixture.volume(volumeNameOf(claim))) && fixture.storage.deletes.length === 1
    await fixture.waitUntil(isReclaimed, 'the first volume to be reclaimed', fixture.runOtherControllers)
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(recreated)), 'the volume of the new claim')
    expect([...fixture.storage.assets.keys()]).toEqual([`${DISKS}/${volumeNameOf(recreated)}`])
  })

  it('PROV-13 creates and deletes the PV if the claim is bound to another volume', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    const body = { spec: { volumeName: 'created-by-hand' } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    open()
    await fixture.waitUntil(
      () => fixture.storage.deletes.length === 1,
      'the volume to be deleted',
      fixture.runOtherControllers,
    )
    await fixture.waitUntil(
      async () => !(await fixture.volume(volumeNameOf(claim))),
      'the deletion of its object',
      fixture.runOtherControllers,
    )
    expect((await fixture.claim('data'))?.spec?.volumeName).toBe('created-by-hand')
    expect(await hasIntent('data')).toBe(false)
    expect(fixture.events.at(-1)).toMatchObject({
      reason: 'ProvisionedVolumeNotNeeded',
      type: 'Normal',
      message: `Volume ${volumeNameOf(claim)} was provisioned for this claim and is not needed: the claim is bound to volume created-by-hand. The volume is deleted.`,
    })
  })

  it('PROV-13 creates the PV of a claim that a user edits', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    const body = { metadata: { labels: { team: 'shop' }, finalizers: ['example.com/mine', INTENT] } }
    await fixture.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    open()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect((await fixture.claim('data'))?.metadata.finalizers).toEqual(['example.com/mine'])
  })

  it('PROV-13 provisions a recreated claim and reclaims the volume of the earlier claim', async () => {
    await fixture.createClass('fast')
    const first = await fixture.createClaim('data')
    fixture.start()
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(first)), 'the first volume')
    await deleteClaim('data')
    await fixture.waitUntil(
      async () => !(await fixture.claim('data')),
      'the deletion of the claim',
      fixture.runOtherControllers,
    )
    const second = await fixture.createClaim('data')
    await fixture.waitUntil(
      () => fixture.volume(volumeNameOf(second)),
      'the second volume',
      fixture.runOtherControllers,
    )
    await fixture.waitUntil(
      async () => !(await fixture.volume(volumeNameOf(first))),
      'the deletion of the first',
      fixture.runOtherControllers,
    )
    expect([...fixture.storage.assets.keys()]).toEqual([`${DISKS}/${volumeNameOf(second)}`])
    expect((await fixture.volume(volumeNameOf(second)))?.spec?.claimRef?.uid).toBe(second.metadata.uid)
  })

  it('PROV-13 does not provision a claim that is deleted before the first call', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    await deleteClaim('data') // its protection finalizer keeps it
    fixture.start()
    await fixture.settle()
    expect(fixture.storage.provisions).toEqual([])
    expect(await hasIntent('data')).toBe(false)
  })
})

describe.each([true, false])('reconcileClaim when creating the PV (atomic commits: %s)', (isAtomic) => {
  const isCreate = (verb: string, args: readonly any[]) =>
    verb === 'create'
      ? args[0] === persistentVolumeKind
      : verb === 'commit' && args[0].some((write: any) => write.do === 'create')

  /** Returns an interceptor that fails the first creations of a volume. */
  const failCreates = (times: number, error: ApiError) => (verb: string, args: readonly any[]) => {
    if (isCreate(verb, args) && times-- > 0) throw error
  }
  const FORBIDDEN = forbidden({ group: '', plural: 'persistentvolumes' }, 'pvc', 'not allowed')

  it('PROV-12 retries while the API server is unavailable', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.start({ isAtomic, intercept: failCreates(12, unavailable('down')) })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.provisions).toHaveLength(1)
    expect(fixture.storage.deletes).toEqual([])
    await fixture.waitUntil(async () => !(await hasIntent('data')), 'the intent to be removed')
  })

  it('PROV-12 retries after one rejection', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.start({ isAtomic, intercept: failCreates(1, FORBIDDEN) })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.deletes).toEqual([])
    expect(messages('ProvisioningFailed')).toHaveLength(1)
  })

  it('PROV-12 deletes the volume after five rejections, records an event and provisions the claim again', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.start({ isAtomic, intercept: failCreates(5, FORBIDDEN) })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(fixture.storage.deletes).toHaveLength(1)
    expect(fixture.storage.provisions).toHaveLength(2)
    expect(messages('ProvisioningFailed').at(-1)).toBe(
      'Error creating provisioned PV object for claim default/data: persistentvolumes "pvc" is forbidden: not allowed. Deleting the volume.',
    )
  })

  it('PROV-8 records an event for each failed deletion of the volume and retries', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.deleteScript.push({ is: 'failed', message: 'busy' }, { is: 'failed', message: 'busy' })
    fixture.start({ isAtomic, intercept: failCreates(5, FORBIDDEN) })
    await fixture.waitUntil(() => fixture.volume(volumeNameOf(claim)), 'the volume to be created')
    expect(messages('ProvisioningCleanupFailed')).toEqual(
      Array(2).fill(
        `Error cleaning provisioned volume for claim default/data: busy. Retrying; until then volume "${volumeNameOf(claim)}" occupies storage.`,
      ),
    )
    expect(fixture.storage.deletes).toHaveLength(3)
  })

  it('PROV-12 deletes the volume if the claim is deleted while the API server rejects the PV', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.start({ isAtomic, intercept: failCreates(1_000, FORBIDDEN) })
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await deleteClaim('data')
    await fixture.waitUntil(isDeleted('data'), 'the claim and its volume to be deleted', fixture.runOtherControllers)
    expect(fixture.storage.provisions).toHaveLength(1)
  })

  it('PROV-12 finds the PV after a lost reply and deletes nothing', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    let creates = 0
    const intercept = async (verb: string, args: readonly any[]) => {
      if (!isCreate(verb, args)) return
      if (creates++ > 0) throw FORBIDDEN
      await (fixture.client[verb as 'commit'] as any)(...args)
      throw unavailable('the reply was lost')
    }
    fixture.start({ isAtomic, intercept })
    await fixture.waitUntil(
      async () => !(await hasIntent('data')) && (await fixture.volumes()).length === 1,
      'the volume to be created',
    )
    await fixture.apiServer.clock.advance(600_000)
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
    expect(await fixture.volume(volumeNameOf(claim))).toBeDefined()
  })
})

describe('reconcileClaim with two provisioners for one claim', () => {
  const OTHER_PROVISIONER = 'other.example.com/disks'
  const volumeOf = (
    claim: Parameters<typeof volumeNameOf>[0],
    spec: object,
    provisionedBy = OTHER_PROVISIONER,
  ): PersistentVolume => ({
    metadata: { name: volumeNameOf(claim), annotations: { [PROVISIONED_BY]: provisionedBy } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      claimRef: { ...ref('data'), uid: claim.metadata.uid },
      ...spec,
    },
  })

  it('PROV-11 deletes its own volume if the other provisioner created its PV first', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { hostPath: { path: '/foreign' } }))
    open()
    await fixture.waitUntil(
      async () => fixture.storage.assets.size === 0 && !(await hasIntent('data')),
      'the own volume to be deleted',
    )
    expect((await fixture.volumes()).map(({ spec }) => spec?.hostPath?.path)).toEqual(['/foreign'])
    expect(messages('ProvisioningFailed')[0]).toContain('was created first')
    expect(fixture.storage.deletes).toHaveLength(1)
  })

  it('PROV-12 finds and deletes its own volume if the other provisioner created its PV during a restart', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const first = fixture.start()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await first.stop()
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { hostPath: { path: '/foreign' } }))
    fixture.start()
    await fixture.waitUntil(
      async () => fixture.storage.assets.size === 0 && !(await hasIntent('data')),
      'the own volume to be deleted',
    )
    expect(await fixture.volumes()).toHaveLength(1)
  })

  it('PROV-11 accepts a PV of the same storage that another instance created', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    const csi = {
      driver: DISKS,
      volumeHandle: `${DISKS}/${volumeNameOf(claim)}`,
      volumeAttributes: { identity: 'another' },
    }
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { csi }, DISKS))
    open()
    await fixture.waitUntil(
      () => fixture.eventReasons().includes('ProvisioningSucceeded'),
      'the volume to be provisioned',
    )
    await fixture.waitUntil(async () => !(await hasIntent('data')), 'the intent to be removed')
    expect(fixture.storage.deletes).toEqual([])
  })

  it('PROV-11 reports a PV of that name that belongs to another claim and does not call the storage', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const csi = { driver: DISKS, volumeHandle: 'foreign' }
    fixture.storage.assets.set('foreign', '1Gi')
    const claimRef = { ...ref('elsewhere'), uid: 'another' }
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { csi, claimRef }, DISKS))
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    expect(instance.queueState('default/data')?.message).toContain('belongs to claim "default/elsewhere"')
    expect(fixture.storage.provisions).toEqual([])
    expect(await hasIntent('data')).toBe(false)
  })

  it('PROV-11 provisions the claim as soon as the PV of that name is deleted', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const csi = { driver: 'other.example.com', volumeHandle: 'foreign' }
    const claimRef = { ...ref('elsewhere'), uid: 'another' }
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { csi, claimRef }, 'other.example.com'))
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    const name = volumeNameOf(claim)
    const body = { metadata: { finalizers: null } }
    await fixture.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })
    await fixture.client.delete(persistentVolumeKind, { name })
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await fixture.waitUntil(() => fixture.eventReasons().includes('ProvisioningSucceeded'), 'the volume to be created')
  })

  it('PROV-11 does not change a PV of the same storage that was created for another claim', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened, handle: 'foreign' })
    fixture.storage.assets.set('foreign', '1Gi')
    const instance = fixture.start()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    const csi = { driver: DISKS, volumeHandle: 'foreign' }
    const claimRef = { ...ref('elsewhere'), uid: 'another' }
    await fixture.client.create(persistentVolumeKind, volumeOf(claim, { csi, claimRef }, DISKS))
    open()
    await fixture.waitUntil(() => instance.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    expect([...fixture.storage.assets.keys()]).toEqual(['foreign'])
    expect(fixture.storage.deletes).toEqual([])
  })

  it('PROV-12 reports the unknown state if the class was changed to another provisioner', async () => {
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const first = fixture.start()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    await first.stop()
    await fixture.client.delete(storageClassKind, { name: 'fast' })
    await fixture.createClass('fast', { provisioner: OTHER_PROVISIONER })
    const second = fixture.start()
    await fixture.waitUntil(() => second.queueState('default/data')?.is === 'stuck', 'the claim to be stuck')
    const expectedMessage = (reason: string, remedy: string) =>
      `It is unknown whether volume "${volumeNameOf(claim)}" exists, and the call cannot be repeated: ${reason}. ` +
      `${remedy}, or look for "${volumeNameOf(claim)}" in the storage, delete it there with its data, and remove the finalizer "${INTENT}" from the claim.`
    expect(messages('ProvisioningFailed').at(-1)).toBe(
      expectedMessage(
        `class "fast" now names the provisioner ${OTHER_PROVISIONER}`,
        'Recreate the class with the provisioner disks.example.com',
      ),
    )
    expect(await hasIntent('data')).toBe(true)
    await fixture.client.delete(storageClassKind, { name: 'fast' })
    await fixture.waitUntil(
      () =>
        messages('ProvisioningFailed').at(-1) ===
        expectedMessage('class "fast" does not exist', 'Recreate the class unchanged'),
      'the message to be reported',
    )
    await fixture.createClass('fast')
    await fixture.waitUntil(
      async () => (await fixture.volumes()).length === 1,
      'the volume to be created for the restored class',
    )
  })
})
