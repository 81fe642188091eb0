import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { type ApiError, forbidden, unavailable } from '../../api/status-error.ts'
import { PROVISIONED_BY, PROVISIONER, SELECTED_NODE } from '../../volumes/names.ts'
import { createProvisioningMetrics } from './metrics.ts'
import { aWorld, DISKS, type World } from './provisioning.fixture.ts'

const INTENT = `provisioning.stowage.dev/${DISKS}`

let world: World
beforeEach(async () => {
  world = await aWorld()
})
afterEach(() => world.close())

const nameFor = ({ metadata }: { metadata: { uid?: string } }) => `pvc-${metadata.uid}`
const intentOn = async (name: string) => (await world.claim(name))?.metadata.finalizers?.includes(INTENT) ?? false
const ref = (name: string) => ({ namespace: 'default', name })
const messages = (reason: string) => world.told.filter((one) => one.reason === reason).map(({ message }) => message)
const deleteClaim = (name: string) => world.client.delete(persistentVolumeClaimKind, ref(name))
const isOver = (name: string) => async () =>
  (await world.claim(name)) === undefined && (await world.volumes()).length === 0 && world.storage.assets.size === 0

/** A promise and its end. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('a claim of this provisioner', () => {
  it('PROV-11 gets a volume with claimRef, class, size, policy, provisioner and finalizer', async () => {
    await world.aClass('fast', { mountOptions: ['noatime'], reclaimPolicy: 'Delete' })
    const claim = await world.aClaim('data', { spec: { accessModes: ['ReadWriteMany'], volumeMode: 'Block' } })
    world.start()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    const volume = await world.volume(nameFor(claim))
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
    await world.until(async () => !(await intentOn('data')), 'the intent to go')
    expect(world.told).toEqual([
      expect.objectContaining({
        type: 'Normal',
        reason: 'Provisioning',
        message: 'External provisioner is provisioning volume for claim "default/data"',
      }),
      expect.objectContaining({
        type: 'Normal',
        reason: 'ProvisioningSucceeded',
        message: `Successfully provisioned volume ${nameFor(claim)}`,
      }),
    ])
    expect(world.storage.provisions).toHaveLength(1)
    expect(world.storage.forgotten).toContain(claim.metadata.uid)
  })

  it('PROV-12 has the intent before the storage is called', async () => {
    await world.aClass('fast')
    let held: boolean | undefined
    await world.aClaim('data')
    const plain = world.storage.provisioner()
    world.start({
      provisioner: {
        ...plain,
        provision: (request, signal, beforeCreate) =>
          plain.provision(request, signal, async () => {
            await beforeCreate?.()
            held ??= await intentOn('data')
          }),
      },
    })
    await world.until(async () => (await world.volumes()).length === 1, 'the volume')
    expect(held).toBe(true)
  })

  it('PROV-8 with an in-process provisioner: other finalizer and wording, no event per try', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.start({ options: { inProcess: true } })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect((await world.volume(nameFor(claim)))?.metadata.finalizers).toContain('kubernetes.io/pv-controller')
    expect(world.told.map(({ message }) => message)).toEqual([
      `Successfully provisioned volume ${nameFor(claim)} using ${DISKS}`,
    ])
  })

  it('PROV-11 gets a volume named by prefix and part of the uid', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.start({ options: { volumeNamePrefix: 'vol', volumeNameUuidLength: 8 } })
    const name = `vol-${claim.metadata.uid?.replaceAll('-', '').slice(0, 8)}`
    await world.until(() => world.volume(name), 'the volume')
    expect(world.storage.provisions[0]?.volumeName).toBe(name)
  })

  it('PROV-11 gets a volume without our finalizer from a Retain class', async () => {
    await world.aClass('fast', { reclaimPolicy: 'Retain' })
    const claim = await world.aClaim('data')
    world.start()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect((await world.volume(nameFor(claim)))?.metadata.finalizers).toEqual(['kubernetes.io/pv-protection'])
  })
})

describe('selection of claims', () => {
  it('PROV-9 ignores claims of other provisioners and bound ones', async () => {
    await world.aClass('fast')
    await world.aClass('theirs', { provisioner: 'tapes.example.com' })
    await world.aClaim('theirs', { storageClassName: 'theirs', provisioner: 'tapes.example.com' })
    await world.aClaim('unasked', { annotations: { [PROVISIONER]: '' } })
    await world.aClaim('bound', { spec: { volumeName: 'old' } })
    const last = await world.aClaim('ours')
    world.start()
    await world.until(() => world.volume(nameFor(last)), 'our own')
    await world.settle()
    expect(world.storage.provisions.map(({ claim }) => claim.metadata.name)).toEqual(['ours'])
    for (const name of ['theirs', 'unasked', 'bound']) {
      expect((await world.claim(name))?.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    }
    expect(new Set(world.told.map(({ about }) => about))).toEqual(new Set(['ours']))
  })

  it('PROV-9 ignores a claim annotated for us whose class names another provisioner', async () => {
    await world.aClass('fast', { provisioner: 'unknown.example.com' })
    await world.aClaim('data')
    world.start()
    await world.settle()
    expect(world.storage.provisions).toEqual([])
    expect(world.told).toEqual([])
  })

  it('PROV-9 reports a missing class, and continues once it exists', async () => {
    const claim = await world.aClaim('data')
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'stuck', 'the reason')
    expect(messages('ProvisioningFailed')).toEqual([
      'storageclass.storage.k8s.io "fast" not found: create it, or recreate the claim with an existing class',
    ])
    expect(await intentOn('data')).toBe(false)
    await world.aClass('fast')
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
  })

  it('PROV-9 provisions for a WaitForFirstConsumer class once a node is selected', async () => {
    await world.aClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await world.aClaim('data')
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'stuck', 'the reason')
    expect(process.standing('default/data')?.because).toContain('no node has been selected')
    expect(world.told).toEqual([])
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'node-7' } } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions[0]?.selectedNode).toBe('node-7')
  })

  it('PROV-9 does not change a claim that the instance does not accept', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    await world.client.create(persistentVolumeClaimKind, {
      metadata: { ...ref('begun'), annotations: { [PROVISIONER]: DISKS }, finalizers: [INTENT] },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        resources: { requests: { storage: '1Gi' } },
      },
    })
    world.start({ provisioner: world.storage.provisioner(DISKS, { accepts: async () => false }) })
    await world.settle()
    expect(world.storage.provisions).toEqual([])
    expect(await intentOn('data')).toBe(false)
    expect(await intentOn('begun')).toBe(true)
  })

  it('PROV-3 uses the class that the claim names, of two default classes', async () => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    for (const name of ['fast', 'slow']) await world.aClass(name, { metadata: { name, annotations } })
    await world.aClaim('data', { storageClassName: 'slow' })
    world.start()
    await world.until(async () => (await world.volumes()).length === 1, 'the volume')
    expect((await world.volumes())[0]?.spec?.storageClassName).toBe('slow')
    expect(world.storage.provisions.map(({ storageClass }) => storageClass.metadata.name)).toEqual(['slow'])
  })
})

describe('a failed try', () => {
  it('PROV-8 is recorded as an event and retried with backoff', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    for (let i = 0; i < 3; i++) world.storage.script.push({ fails: 'final', because: `no ${i}` })
    const process = world.start()
    const pauses: number[] = []
    for (let i = 0; i < 3; i++) {
      await world.settle()
      const standing = process.standing('default/data')
      expect(standing).toMatchObject({ is: 'waiting', because: `no ${i}` })
      pauses.push(standing!.nextAtMs! - world.trial.clock.nowMs())
      await world.trial.clock.advance(pauses[i]!)
    }
    expect(pauses).toEqual([750, 1_500, 3_000]) // 1 s doubling, three quarters of it by chance
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(messages('ProvisioningFailed')).toEqual(['no 0', 'no 1', 'no 2'])
    expect(world.reasons().filter((reason) => reason === 'Provisioning')).toHaveLength(4)
  })

  it('PROV-10 is retried after five minutes if infeasible, or when the class is replaced', async () => {
    const slow = await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ fails: 'infeasible', because: 'bad parameter' }, { fails: 'infeasible' })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    expect(messages('ProvisioningFailed')).toEqual([
      'Volume provisioning failed with infeasible error. Retries will be delayed. bad parameter',
    ])
    const body = { metadata: { labels: { touched: 'yes' } } }
    await world.client.patch(storageClassKind, { name: 'fast' }, { type: 'merge', body })
    await world.settle()
    await world.trial.clock.advance(200_000)
    await world.settle()
    expect(world.storage.provisions).toHaveLength(1)
    await world.trial.clock.advance(100_001)
    await world.settle()
    expect(world.storage.provisions).toHaveLength(2)
    await world.client.delete(storageClassKind, { name: 'fast' })
    await world.aClass('fast', { parameters: { good: 'yes' } })
    await world.settle()
    expect(world.storage.provisions[2]?.storageClass.metadata.uid).not.toBe(slow.metadata.uid)
    expect(await world.volumes()).toHaveLength(1)
  })

  it('PROV-9 clears the selected node if another may work, and continues with the next one', async () => {
    await world.aClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await world.aClaim('data', { annotations: { [SELECTED_NODE]: 'full' } })
    world.storage.script.push({ fails: 'reschedule', because: 'no room' })
    world.start()
    await world.until(
      async () => (await world.claim('data'))?.metadata.annotations?.[SELECTED_NODE] === undefined,
      'the choice to be given back',
    )
    await world.settle()
    expect(messages('ProvisioningFailed')).toEqual(['no room'])
    expect(await intentOn('data')).toBe(false)
    expect(world.storage.provisions).toHaveLength(1)
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'roomy' } } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions[1]?.selectedNode).toBe('roomy')
  })

  it('PROV-12 clears a deleted node, but keeps the intent if an earlier process may have created a volume', async () => {
    await world.aClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' })
    const claim = await world.aClaim('data', { annotations: { [SELECTED_NODE]: 'gone' } })
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const first = world.start()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the wait')
    await first.stop()
    world.storage.script.push({ fails: 'reschedule', isNotCalled: true, because: 'no such node' })
    world.start()
    await world.until(
      async () => (await world.claim('data'))?.metadata.annotations?.[SELECTED_NODE] === undefined,
      'the choice to be given back',
    )
    expect(await intentOn('data')).toBe(true)
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'other' } } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions[2]?.selectedNode).toBe('other')
    expect(await intentOn('data')).toBe(false)
    expect(world.storage.assets.size).toBe(1)
  })

  it('PROV-12 keeps the intent if the request is rejected before the call and an earlier process may have created a volume', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const first = world.start()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the wait')
    await first.stop()
    await world.client.delete(persistentVolumeClaimKind, ref('data'))
    world.storage.script.push({ fails: 'final', isNotCalled: true })
    world.start()
    await world.until(() => world.volume(nameFor(claim)), 'the volume, which can be reclaimed')
    expect(world.storage.provisions).toHaveLength(3)
  })

  it('PROV-12 leaves no intent if the request is rejected before the call, also after restarts', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    for (let i = 0; i < 9; i++) world.storage.script.push({ fails: 'final', isNotCalled: true })
    const first = world.start()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the wait')
    expect(await intentOn('data')).toBe(false)
    await first.stop()
    world.start()
    await deleteClaim('data')
    await world.until(isOver('data'), 'the end', world.housekeeping)
  })

  it('PROV-12 does not repeat a call because of an intent that only a stale cache shows', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    const finalizers = (metadata: object) =>
      world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body: { metadata } })
    await finalizers({ finalizers: [INTENT] })
    await deleteClaim('data')
    const accepts = async () => {
      if (await world.claim('data')) await finalizers({ finalizers: null })
      return true
    }
    world.start({ provisioner: world.storage.provisioner(DISKS, { accepts }) })
    await world.until(isOver('data'), 'the end')
    await world.settle()
    expect(world.storage.provisions).toEqual([])
  })

  it('PROV-12 reads the claim after a conflict instead of retrying with a stale cache', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    let reads = 0
    let tries = 0
    world.start({
      async intercept(verb, [kind]) {
        if (kind !== persistentVolumeClaimKind) return
        if (verb === 'get') reads++
        if (verb !== 'patch' || ++tries > 1) return
        const body = { metadata: { labels: { touched: 'yes' } } }
        await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
      },
    })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect({ reads, tries }).toEqual({ reads: 1, tries: 2 })
  })

  it('PROV-9 treats reschedule as final without a selected node', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'reschedule' })
    world.start()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions).toHaveLength(2)
  })

  it('PROV-12 with unknown result is repeated unchanged, although the class has changed', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    await world.client.delete(storageClassKind, { name: 'fast' })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions).toHaveLength(2)
    expect(world.storage.provisions[1]).toBe(world.storage.provisions[0])
  })

  it('PROV-12 has an unknown result if the provisioner throws', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ throws: new Error('a bug'), creates: true })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    expect(messages('ProvisioningFailed')).toEqual(['a bug'])
    await deleteClaim('data')
    await world.until(isOver('data'), 'the end', world.housekeeping)
    expect(world.storage.deletes).toHaveLength(1)
  })

  it('PROV-8 is reported and counted once when it exceeds its time limit, and awaited', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    const plain = world.storage.provisioner()
    let overdue: ((because: string) => void) | undefined
    const registry = new Registry()
    world.start({
      provisioningMetrics: createProvisioningMetrics(registry),
      provisioner: {
        ...plain,
        provision(request, signal, beforeCreate, onOverdue) {
          overdue = onOverdue
          return plain.provision(request, signal, beforeCreate)
        },
      },
    })
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    overdue?.('not done within the timeout of 600 s')
    overdue?.('not done within the timeout of 600 s')
    expect(messages('ProvisioningFailed')).toEqual(Array(2).fill('not done within the timeout of 600 s'))
    expect(await registry.metrics()).toMatch(/provision_failed_total\{class="fast",source=""\} 1$/m)
    open()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions).toHaveLength(1)
  })

  it('PROV-9 is dropped without an event if the provisioner ignores the claim', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ ignores: true })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await world.settle()
    await world.trial.clock.advance(600_000)
    expect(world.reasons()).toEqual(['Provisioning'])
    expect(await intentOn('data')).toBe(false)
    expect(world.storage.provisions).toHaveLength(1)
  })

  it('PROV-10 is recorded and retried for an unsupported selector', async () => {
    await world.aClass('fast')
    await world.aClaim('data', { spec: { selector: { matchLabels: { region: 'north' } } } })
    for (let i = 0; i < 2; i++)
      world.storage.script.push({ fails: 'final', because: 'claim Selector is not supported' })
    world.storage.script.push({ labels: { region: 'north' } })
    world.start()
    await world.until(async () => (await world.volumes()).length === 1, 'the volume')
    expect(messages('ProvisioningFailed')).toEqual(Array(2).fill('claim Selector is not supported'))
    expect((await world.volumes())[0]?.metadata.labels).toEqual({ region: 'north' })
  })
})

describe('a volume that does not satisfy its claim', () => {
  it.each([
    ['smaller than the request', { size: '10Mi' }, {}, 'it has 10Mi, and the claim requests 1024Mi'],
    [
      'a byte smaller than the request',
      { size: '1073741823' },
      {},
      'it has 1073741823 bytes, and the claim requests 1073741824 bytes',
    ],
    [
      'without the labels of the selector',
      {},
      { selector: { matchLabels: { region: 'north' } } },
      "its labels do not match the claim's selector",
    ],
  ])('PROV-11 %s is deleted, reported and provisioned again', async (_what, answer, spec, why) => {
    await world.aClass('fast')
    const claim = await world.aClaim('data', { spec })
    world.storage.script.push(answer, { labels: { region: 'north' } })
    world.start()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(messages('ProvisioningFailed')).toEqual([
      `Volume "${nameFor(claim)}" does not satisfy the claim: ${why}. It is deleted again.`,
    ])
    expect(world.storage.deletes).toHaveLength(1)
    expect([...world.storage.assets.values()]).toEqual(['1Gi'])
  })

  it('PROV-13 is deleted with its claim if the claim is deleted meanwhile', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    const { opened, open } = gate()
    for (let i = 0; i < 3; i++) world.storage.script.push({ size: '10Mi', after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await deleteClaim('data')
    open()
    await world.until(isOver('data'), 'the end', world.housekeeping)
    expect(world.storage.provisions).toHaveLength(1)
  })
})

describe('a claim that changes during provisioning', () => {
  it('PROV-13 deleted: the volume gets a PV, is released and deleted', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await deleteClaim('data')
    await world.housekeeping()
    expect(await intentOn('data')).toBe(true)
    open()
    await world.until(isOver('data'), 'the end', world.housekeeping)
    expect(world.storage.deletes).toHaveLength(1)
  })

  it('PROV-13 deleted, and no volume was created: the claim is removed immediately', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened, fails: 'final' })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await deleteClaim('data')
    await world.housekeeping()
    open()
    await world.settle()
    expect(await world.claim('data')).toBeUndefined()
    expect(world.storage.provisions).toHaveLength(1)
  })

  it('PROV-13 deleted between two tries without a volume: the claim is removed immediately', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ fails: 'final' })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    expect(await intentOn('data')).toBe(true)
    await deleteClaim('data')
    await world.housekeeping()
    await world.settle()
    expect(await world.claim('data')).toBeUndefined()
    expect(world.storage.provisions).toHaveLength(1)
  })

  it('PROV-13 deleted between two tries with unknown result: the next one finds the volume, which is deleted', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true }, { fails: 'unfinished' }, { fails: 'noChange' })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    await deleteClaim('data')
    await world.until(isOver('data'), 'the end', world.housekeeping)
    expect(world.storage.provisions).toHaveLength(4)
  })

  it.each(['unfinished', 'noChange'] as const)(
    'PROV-13 deleted, and the storage does not answer (%s): the event says what is awaited and how to end it',
    async (fails) => {
      await world.aClass('fast')
      const claim = await world.aClaim('data')
      const because = `rpc error: desc = ${'hung '.repeat(300)}`
      world.storage.script.push({ fails: 'unfinished', because: 'hung' })
      for (let i = 0; i < 3; i++) world.storage.script.push({ fails, because })
      const process = world.start()
      await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
      expect(messages('ProvisioningFailed')).toEqual(['hung'])
      await deleteClaim('data')
      await world.until(() => messages('ProvisioningFailed').length > 1, 'the event')
      const told = messages('ProvisioningFailed')[1]!
      expect(told).toMatch(/^rpc error: desc = hung hung/)
      expect(told).toContain('The claim is kept until it is known whether its volume exists')
      const giveUp = `look for "${nameFor(claim)}" in the storage, delete it there, and remove the finalizer "${INTENT}" from the claim.`
      expect(told.endsWith(giveUp)).toBe(true)
      expect(Buffer.byteLength(told)).toBeLessThan(1_024) // what an event holds
      await world.until(isOver('data'), 'the end', world.housekeeping)
    },
  )

  it('PROV-13 deleted, and no volume exists: the event does not say so', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened, fails: 'final', because: 'full' })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await deleteClaim('data')
    await world.settle()
    open()
    await world.until(() => messages('ProvisioningFailed').length > 0, 'the event')
    expect(messages('ProvisioningFailed')).toEqual(['full'])
  })

  it('PROV-13 deleted by force with its intent removed: the volume is still found and deleted', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the wait')
    const body = { metadata: { finalizers: null } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    await deleteClaim('data')
    const again = await world.aClaim('data') // another claim of the same name
    const isReclaimed = async () => !(await world.volume(nameFor(claim))) && world.storage.deletes.length === 1
    await world.until(isReclaimed, 'the first one to be reclaimed', world.housekeeping)
    await world.until(() => world.volume(nameFor(again)), 'the volume of the other')
    expect([...world.storage.assets.keys()]).toEqual([`${DISKS}/${nameFor(again)}`])
  })

  it('PROV-13 bound to another volume: ours gets a PV, is released and deleted', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    const body = { spec: { volumeName: 'made-by-hand' } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    open()
    await world.until(() => world.storage.deletes.length === 1, 'the volume to be deleted', world.housekeeping)
    await world.until(async () => !(await world.volume(nameFor(claim))), 'its object to go', world.housekeeping)
    expect((await world.claim('data'))?.spec?.volumeName).toBe('made-by-hand')
    expect(await intentOn('data')).toBe(false)
    expect(world.reasons()).toEqual(['Provisioning', 'ProvisionedVolumeNotNeeded'])
    expect(world.told[1]).toMatchObject({
      type: 'Normal',
      message: `Volume ${nameFor(claim)} was provisioned for this claim and is not needed: the claim is bound to volume made-by-hand. It is deleted.`,
    })
  })

  it('PROV-13 edited: the PV is still created', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    const body = { metadata: { labels: { team: 'shop' }, finalizers: ['example.com/mine', INTENT] } }
    await world.client.patch(persistentVolumeClaimKind, ref('data'), { type: 'merge', body })
    open()
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect((await world.claim('data'))?.metadata.finalizers).toEqual(['example.com/mine'])
  })

  it('PROV-13 deleted and recreated with the same name: each gets its volume, and the first is reclaimed', async () => {
    await world.aClass('fast')
    const first = await world.aClaim('data')
    world.start()
    await world.until(() => world.volume(nameFor(first)), 'the first volume')
    await deleteClaim('data')
    await world.until(async () => !(await world.claim('data')), 'the claim to go', world.housekeeping)
    const second = await world.aClaim('data')
    await world.until(() => world.volume(nameFor(second)), 'the second volume', world.housekeeping)
    await world.until(async () => !(await world.volume(nameFor(first))), 'the first to go', world.housekeeping)
    expect([...world.storage.assets.keys()]).toEqual([`${DISKS}/${nameFor(second)}`])
    expect((await world.volume(nameFor(second)))?.spec?.claimRef?.uid).toBe(second.metadata.uid)
  })

  it('PROV-9 deleted before provisioning: never started', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    await deleteClaim('data') // protected: it is still there
    world.start()
    await world.settle()
    expect(world.storage.provisions).toEqual([])
    expect(await intentOn('data')).toBe(false)
  })
})

describe.each([true, false])('creating the PV (atomic commits: %s)', (isAtomic) => {
  const isCreate = (verb: string, args: readonly any[]) =>
    verb === 'create'
      ? args[0] === persistentVolumeKind
      : verb === 'commit' && args[0].some((write: any) => write.do === 'create')

  /** Fails the first creations of a volume. */
  const failing = (times: number, error: ApiError) => (verb: string, args: readonly any[]) => {
    if (isCreate(verb, args) && times-- > 0) throw error
  }
  const REFUSED = forbidden({ group: '', plural: 'persistentvolumes' }, 'pvc', 'not allowed')

  it('PROV-12 retries without limit while the API server does not answer', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.start({ isAtomic, intercept: failing(12, unavailable('down')) })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.provisions).toHaveLength(1)
    expect(world.storage.deletes).toEqual([])
    await world.until(async () => !(await intentOn('data')), 'the intent to go')
  })

  it('PROV-12 retries after one rejection', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.start({ isAtomic, intercept: failing(1, REFUSED) })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.deletes).toEqual([])
    expect(messages('ProvisioningFailed')).toHaveLength(1)
  })

  it('PROV-12 deletes the volume, with an event, after five rejections, and starts over', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.start({ isAtomic, intercept: failing(5, REFUSED) })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(world.storage.deletes).toHaveLength(1)
    expect(world.storage.provisions).toHaveLength(2)
    expect(messages('ProvisioningFailed').at(-1)).toBe(
      'Error creating provisioned PV object for claim default/data: persistentvolumes "pvc" is forbidden: not allowed. Deleting the volume.',
    )
  })

  it('PROV-8 retries deleting the volume, with an event, until it succeeds', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.deleteScript.push({ is: 'failed', because: 'busy' }, { is: 'failed', because: 'busy' })
    world.start({ isAtomic, intercept: failing(5, REFUSED) })
    await world.until(() => world.volume(nameFor(claim)), 'the volume')
    expect(messages('ProvisioningCleanupFailed')).toEqual(
      Array(2).fill(
        `Error cleaning provisioned volume for claim default/data: busy. Retrying; until then volume "${nameFor(claim)}" occupies storage.`,
      ),
    )
    expect(world.storage.deletes).toHaveLength(3)
  })

  it('PROV-12 deletes the volume if the claim is deleted while the API server rejects the PV', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.start({ isAtomic, intercept: failing(1_000, REFUSED) })
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await deleteClaim('data')
    await world.until(isOver('data'), 'the end', world.housekeeping)
    expect(world.storage.provisions).toHaveLength(1)
  })

  it('PROV-12 finds the PV after a lost reply, and deletes nothing', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    let creates = 0
    const intercept = async (verb: string, args: readonly any[]) => {
      if (!isCreate(verb, args)) return
      if (creates++ > 0) throw REFUSED
      await (world.client[verb as 'commit'] as any)(...args)
      throw unavailable('the reply was lost')
    }
    world.start({ isAtomic, intercept })
    await world.until(async () => !(await intentOn('data')) && (await world.volumes()).length === 1, 'the end')
    await world.trial.clock.advance(600_000)
    await world.settle()
    expect(world.storage.deletes).toEqual([])
    expect(await world.volume(nameFor(claim))).toBeDefined()
  })
})

describe('two provisioners for one claim', () => {
  const OTHERS = 'other.example.com/disks'
  const volumeOf = (claim: any, spec: object, by = OTHERS): any => ({
    metadata: { name: nameFor(claim), annotations: { [PROVISIONED_BY]: by } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      claimRef: { ...ref('data'), uid: claim.metadata.uid },
      ...spec,
    },
  })

  it('PROV-11 deletes ours if the other created its PV first', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await world.client.create(persistentVolumeKind, volumeOf(claim, { hostPath: { path: '/theirs' } }))
    open()
    await world.until(async () => world.storage.assets.size === 0 && !(await intentOn('data')), 'the end')
    expect((await world.volumes()).map(({ spec }) => spec?.hostPath?.path)).toEqual(['/theirs'])
    expect(messages('ProvisioningFailed')[0]).toContain('was created first')
    expect(world.storage.deletes).toHaveLength(1)
  })

  it('PROV-12 finds and deletes ours if the other created its PV while we were down', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const first = world.start()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the wait')
    await first.stop()
    await world.client.create(persistentVolumeKind, volumeOf(claim, { hostPath: { path: '/theirs' } }))
    world.start()
    await world.until(async () => world.storage.assets.size === 0 && !(await intentOn('data')), 'the end')
    expect(await world.volumes()).toHaveLength(1)
  })

  it('PROV-11 accepts a PV of the same storage from another instance of ours', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened })
    world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    const csi = { driver: DISKS, volumeHandle: `${DISKS}/${nameFor(claim)}`, volumeAttributes: { madeBy: 'another' } }
    await world.client.create(persistentVolumeKind, volumeOf(claim, { csi }, DISKS))
    open()
    await world.until(() => world.reasons().includes('ProvisioningSucceeded'), 'the end')
    await world.until(async () => !(await intentOn('data')), 'the intent to go')
    expect(world.storage.deletes).toEqual([])
  })

  it('PROV-11 reports a PV name that belongs to another claim, and never touches its storage', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const csi = { driver: DISKS, volumeHandle: 'theirs' }
    world.storage.assets.set('theirs', '1Gi')
    const claimRef = { ...ref('elsewhere'), uid: 'another' }
    await world.client.create(persistentVolumeKind, volumeOf(claim, { csi, claimRef }, DISKS))
    const process = world.start()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the reason')
    expect(process.standing('default/data')?.because).toContain('belongs to claim "default/elsewhere"')
    expect(world.storage.provisions).toEqual([])
    expect(await intentOn('data')).toBe(false)
  })

  it('PROV-11 leaves a PV alone that another claim obtained meanwhile with the same storage', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    const { opened, open } = gate()
    world.storage.script.push({ after: opened, handle: 'theirs' })
    world.storage.assets.set('theirs', '1Gi')
    const process = world.start()
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    const csi = { driver: DISKS, volumeHandle: 'theirs' }
    const claimRef = { ...ref('elsewhere'), uid: 'another' }
    await world.client.create(persistentVolumeKind, volumeOf(claim, { csi, claimRef }, DISKS))
    open()
    await world.until(() => process.standing('default/data')?.is === 'waiting', 'the reason')
    expect([...world.storage.assets.keys()]).toEqual(['theirs'])
    expect(world.storage.deletes).toEqual([])
  })

  it('PROV-12 reports that the state is unknown if the class names another provisioner now', async () => {
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'unfinished', creates: true })
    const first = world.start()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the wait')
    await first.stop()
    await world.client.delete(storageClassKind, { name: 'fast' })
    await world.aClass('fast', { provisioner: OTHERS })
    const second = world.start()
    await world.until(() => second.standing('default/data')?.is === 'stuck', 'the reason')
    const asked = (why: string) =>
      `It is unknown whether volume "${nameFor(claim)}" exists, and the call cannot be repeated: ${why}. ` +
      `Create the class again as it was; or look for "${nameFor(claim)}" in the storage, delete it there, and remove the finalizer "${INTENT}" from the claim.`
    expect(messages('ProvisioningFailed').at(-1)).toBe(asked(`its class "fast" now names the provisioner ${OTHERS}`))
    expect(await intentOn('data')).toBe(true)
    await world.client.delete(storageClassKind, { name: 'fast' })
    await world.until(
      () => messages('ProvisioningFailed').at(-1) === asked('its class "fast" does not exist'),
      'the reason',
    )
    await world.aClass('fast')
    await world.until(async () => (await world.volumes()).length === 1, 'the volume, once the class is restored')
  })
})
