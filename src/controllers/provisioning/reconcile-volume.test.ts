import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { unavailable } from '../../api/status-error.ts'
import { DELETION_REQUESTED_ANNOTATION } from '../../volumes/deletion-requested.ts'
import { EXTERNAL_PROVISIONER_FINALIZER as FINALIZER, PROVISIONED_BY } from '../../volumes/names.ts'
import { createProvisioningFixture, DISKS, type ProvisioningFixture } from './provisioning.fixture.ts'

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
})
afterEach(() => fixture.close())

interface VolumeOptions {
  readonly provisionedBy?: string | null
  readonly policy?: 'Delete' | 'Retain' | 'Recycle'
  readonly finalizers?: string[]
  readonly spec?: object
}

async function createVolume(
  name: string,
  { provisionedBy = DISKS, policy = 'Delete', finalizers = [FINALIZER], spec }: VolumeOptions = {},
) {
  fixture.storage.assets.set(name, '1Gi')
  await fixture.client.create(persistentVolumeKind, {
    metadata: { name, finalizers, annotations: provisionedBy === null ? {} : { [PROVISIONED_BY]: provisionedBy } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: policy,
      claimRef: { namespace: 'default', name: 'gone', uid: 'gone' },
      csi: { driver: DISKS, volumeHandle: name },
      ...spec,
    },
  })
}
const setPhase = (name: string, phase: string) =>
  fixture.client.patch(
    persistentVolumeKind,
    { name },
    { type: 'merge', body: { status: { phase } } },
    { subresource: 'status' },
  )
const isDeleted = (name: string) => async () => (await fixture.volume(name)) === undefined
const readFinalizers = async (name: string) => (await fixture.volume(name))?.metadata.finalizers ?? []
const patchVolume = (name: string, body: object) =>
  fixture.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })

describe.each([true, false])('reconcileVolume of a released volume (atomic commits: %s)', (isAtomic) => {
  it('PROV-14 deletes the storage and then the PV', async () => {
    await createVolume('pv')
    const instance = fixture.start({ isAtomic })
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
    await fixture.release('pv')
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.assets.size).toBe(0)
    const writes = instance.calls.filter((call) => call !== 'get')
    expect(writes).toEqual(isAtomic ? ['patch', 'delete', 'commit'] : ['patch', 'delete', 'delete', 'patch'])
    expect(fixture.events).toEqual([])
  })

  it('PROV-14 records an event and retries with backoff if the storage cannot be deleted', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    for (let i = 0; i < 2; i++) fixture.storage.deleteScript.push({ is: 'failed', message: `busy ${i}` })
    const instance = fixture.start({ isAtomic })
    const delaysMs: number[] = []
    for (let i = 0; i < 2; i++) {
      await fixture.settle()
      const queueState = instance.queueState('pv')
      expect(queueState).toMatchObject({ is: 'waiting', message: `busy ${i}` })
      expect(await fixture.volume('pv')).toMatchObject({ status: { phase: 'Released' } })
      delaysMs.push(queueState!.nextAtMs! - fixture.apiServer.clock.nowMs())
      await fixture.apiServer.clock.advance(delaysMs[i]!)
    }
    expect(delaysMs).toEqual([750, 1_500])
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.events.map(({ type, reason, message, objectName }) => [type, reason, message, objectName])).toEqual([
      ['Warning', 'VolumeFailedDelete', 'busy 0', 'pv'],
      ['Warning', 'VolumeFailedDelete', 'busy 1', 'pv'],
    ])
  })

  it('PLUS-11 deletes other volumes and provisions claims while deletions of the volumes of a lost node hang', async () => {
    const requirement = { key: 'disks.example.com/node', operator: 'In', values: ['lost'] }
    const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [requirement] }] } }
    for (let index = 0; index < 30; index++) {
      await createVolume(`dead-${index}`, { spec: { nodeAffinity } })
      await fixture.release(`dead-${index}`)
    }
    await createVolume('pv')
    const storage = fixture.storage.provisioner()
    let hangingCount = 0
    const provisioner = {
      ...storage,
      delete: (...args: Parameters<typeof storage.delete>) => {
        if (!args[0].metadata.name?.startsWith('dead')) return storage.delete(...args)
        hangingCount++
        return new Promise<never>((_, reject) => args[1].addEventListener('abort', () => reject(new Error('stopped'))))
      },
    }
    fixture.start({ isAtomic, provisioner, options: { workers: 10 } })
    await fixture.waitUntil(() => hangingCount === 5, 'half of the workers to call the storage')
    await fixture.release('pv')
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the claim to be provisioned')
    expect(hangingCount).toBe(5)
  })

  it('PROV-14 repeats the deletion of the storage if the PV could not be deleted', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    let failures = 3
    const intercept = (verb: string, args: readonly any[]) => {
      const isDelete = verb === 'commit' || (verb === 'delete' && args[0] === persistentVolumeKind)
      if (isDelete && failures-- > 0) throw unavailable('down')
    }
    fixture.start({ isAtomic, intercept })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.deletes.length).toBeGreaterThan(1)
  })

  it('PROV-14 annotates the unchanged PV before it deletes the storage', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    let isRetained = false
    const intercept = async (verb: string, args: readonly any[]) => {
      const setsAnnotation = verb === 'patch' && args[2].body?.metadata?.annotations?.[DELETION_REQUESTED_ANNOTATION]
      if (!setsAnnotation || isRetained) return
      isRetained = true
      await patchVolume('pv', { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
    }
    fixture.start({ isAtomic, intercept })
    await fixture.waitUntil(() => isRetained, 'the attempt to annotate the volume')
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
    expect((await fixture.volume('pv'))?.metadata.annotations).not.toHaveProperty([DELETION_REQUESTED_ANNOTATION])
    await patchVolume('pv', { spec: { persistentVolumeReclaimPolicy: 'Delete' } })
    fixture.storage.deleteScript.push({ is: 'failed', message: 'busy' })
    await fixture.waitUntil(() => fixture.storage.deletes.length === 1, 'the delete call')
    expect((await fixture.volume('pv'))?.metadata.annotations).toHaveProperty([DELETION_REQUESTED_ANNOTATION])
  })

  it('PROV-14 continues a deletion after the claimRef is cleared, unless the policy is Retain', async () => {
    for (const name of ['gone', 'kept']) await createVolume(name)
    fixture.storage.deleteScript.push({ is: 'failed', message: 'busy' }, { is: 'failed', message: 'busy' })
    fixture.start({ isAtomic })
    for (const name of ['gone', 'kept']) await fixture.release(name)
    await fixture.waitUntil(() => fixture.storage.deletes.length === 2, 'both delete calls')
    await patchVolume('kept', { spec: { persistentVolumeReclaimPolicy: 'Retain', claimRef: null } })
    await patchVolume('gone', { spec: { claimRef: null } })
    await fixture.waitUntil(isDeleted('gone'), 'the deletion of the volume', fixture.runOtherControllers)
    await fixture.apiServer.clock.advance(3_600_000)
    await fixture.settle()
    expect([...fixture.storage.assets.keys()]).toEqual(['kept'])
  })

  it('PROV-18 keeps a PV that a user deletes before its claim until the storage is deleted', async () => {
    await createVolume('pv')
    await setPhase('pv', 'Bound')
    fixture.start({ isAtomic })
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    await fixture.settle()
    expect(fixture.storage.assets.has('pv')).toBe(true)
    await fixture.release('pv')
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.assets.size).toBe(0)
  })
})

describe('reconcileVolume of a volume that a user deletes', () => {
  it('PROV-14 deletes the storage of an Available volume', async () => {
    await createVolume('pv', { spec: { claimRef: undefined } })
    await setPhase('pv', 'Available')
    fixture.start()
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.assets.size).toBe(0)
  })

  it('PROV-14 deletes the volume if its claim is not bound, and keeps it if the claim is bound', async () => {
    const claim = await fixture.createClaim('data', { storageClassName: 'none' })
    const claimRef = { namespace: 'default', name: 'data', uid: claim.metadata.uid }
    await createVolume('pv', { spec: { claimRef } })
    await createVolume('kept', { spec: { claimRef } })
    fixture.start()
    await fixture.release('pv')
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    await fixture.waitUntil(() => !fixture.storage.assets.has('pv'), 'the deletion of its storage')
    const body = { spec: { volumeName: 'kept' } }
    await fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: 'data' },
      { type: 'merge', body },
    )
    await fixture.release('kept')
    await fixture.client.delete(persistentVolumeKind, { name: 'kept' })
    await fixture.settle()
    expect([...fixture.storage.assets.keys()]).toEqual(['kept'])
  })
})

describe('reconcileVolume of volumes of any owner, policy and phase', () => {
  it.each([
    ['PROV-14 ignores a volume of another provisioner', { provisionedBy: 'tapes.example.com' }, 'Released'],
    ['PROV-15 ignores a volume with policy Retain', { policy: 'Retain' }, 'Released'],
    ['PROV-14 ignores a volume with policy Recycle', { policy: 'Recycle' }, 'Released'],
    ['PROV-14 ignores a bound volume', {}, 'Bound'],
    ['PROV-14 ignores a volume that was never bound', {}, 'Available'],
    ['PROV-14 ignores a Failed volume', {}, 'Failed'],
    ['PROV-15 ignores a released volume without a claimRef', { spec: { claimRef: undefined } }, 'Released'],
    [
      'PROV-20 ignores a volume with a foreign source',
      { provisionedBy: null, spec: { csi: undefined, hostPath: { path: '/x' } } },
      'Released',
    ],
  ] as [string, VolumeOptions, string][])('%s', async (_title, options, phase) => {
    await createVolume('pv', options)
    await setPhase('pv', phase)
    await createVolume('own')
    await fixture.release('own')
    fixture.start()
    await fixture.waitUntil(
      async () => (await fixture.volume('own'))?.metadata.deletionTimestamp,
      'the own volume to be deleted',
    )
    await fixture.settle()
    expect(fixture.storage.deletes.map(({ metadata }) => metadata.name)).toEqual(['own'])
    expect(await fixture.volume('pv')).toBeDefined()
  })

  it('PROV-20 deletes a volume without the provisioned-by annotation if the provisioner owns its source', async () => {
    await createVolume('static', { provisionedBy: null, finalizers: [] })
    await fixture.release('static')
    fixture.start()
    await fixture.waitUntil(isDeleted('static'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.assets.size).toBe(0)
  })

  it('PROV-14 ignores a volume of another instance', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    fixture.storage.deleteScript.push({ is: 'ignored', message: 'not on this node' })
    fixture.start()
    await fixture.waitUntil(() => fixture.storage.deletes.length === 1, 'the delete call')
    await fixture.settle()
    await fixture.apiServer.clock.advance(600_000)
    expect(fixture.storage.deletes).toHaveLength(1)
    expect(await fixture.volume('pv')).toBeDefined()
    expect(fixture.events).toEqual([])
  })

  it('PROV-20 reports a volume with its annotation but a foreign source, and releases it if a user deletes it', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    const foreignResult = { is: 'failed', message: 'foreign source; nothing was changed', isForeign: true } as const
    fixture.storage.deleteScript.push(foreignResult, foreignResult)
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('pv')?.is === 'stuck', 'the volume to be stuck')
    await fixture.apiServer.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.events).toMatchObject([
      { reason: 'VolumeFailedDelete', message: 'foreign source; nothing was changed' },
    ])
    expect(await readFinalizers('pv')).toContain(FINALIZER)
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the object', fixture.runOtherControllers)
    expect(fixture.storage.assets.has('pv')).toBe(true)
  })

  it('PROV-14 reports a delete call that exceeds its timeout and keeps waiting', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    const provisioner = fixture.storage.provisioner()
    let resume = () => {}
    const gate = new Promise<void>((resolve) => {
      resume = resolve
    })
    fixture.start({
      provisioner: {
        ...provisioner,
        async delete(volume, signal, onOverdue) {
          onOverdue?.('did not finish within the timeout of 600 s')
          await gate
          return provisioner.delete(volume, signal)
        },
      },
    })
    await fixture.waitUntil(() => fixture.events.length > 0, 'the event to be recorded')
    expect(fixture.events).toMatchObject([
      { reason: 'VolumeFailedDelete', message: 'did not finish within the timeout of 600 s' },
    ])
    resume()
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
    expect(fixture.storage.deletes).toHaveLength(1)
  })

  it('PROV-14 ignores a volume being deleted that no longer has its finalizer', async () => {
    await createVolume('pv', { finalizers: ['example.com/hold'] })
    await fixture.release('pv')
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    fixture.start()
    await fixture.settle()
    expect(fixture.storage.deletes).toEqual([])
  })
})

describe('the provisioner finalizer of volumes', () => {
  it('PROV-18 is set on bound volumes while their policy is Delete', async () => {
    await createVolume('static', { provisionedBy: null, finalizers: [] })
    await setPhase('static', 'Bound')
    fixture.start()
    await fixture.waitUntil(
      async () => (await readFinalizers('static')).includes(FINALIZER),
      'the finalizer to be added',
    )
    await patchVolume('static', { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
    await fixture.waitUntil(
      async () => !(await readFinalizers('static')).includes(FINALIZER),
      'the finalizer to be removed',
    )
    await patchVolume('static', { spec: { persistentVolumeReclaimPolicy: 'Delete' } })
    await fixture.waitUntil(
      async () => (await readFinalizers('static')).includes(FINALIZER),
      'the finalizer to be set again',
    )
    expect(await readFinalizers('static')).toContain('kubernetes.io/pv-protection')
  })

  it('PROV-15 is removed if the policy is changed to Retain, so that the PV can be deleted without its storage', async () => {
    await createVolume('pv')
    await setPhase('pv', 'Bound')
    fixture.start()
    await patchVolume('pv', { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
    await fixture.release('pv')
    await fixture.client.delete(persistentVolumeKind, { name: 'pv' })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the object', fixture.runOtherControllers)
    expect(fixture.storage.assets.has('pv')).toBe(true)
    expect(fixture.storage.deletes).toEqual([])
  })
})

describe('reconcileVolume of a released volume that may be in use', () => {
  it('PROV-14 keeps the volume while its claim exists without another volume', async () => {
    const claim = await fixture.createClaim('data', {
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'x.y/z' },
    })
    const claimRef = { namespace: 'default', name: 'data', uid: claim.metadata.uid }
    await createVolume('pv', { spec: { claimRef } })
    await fixture.release('pv')
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('pv')?.is === 'stuck', 'the volume to be stuck')
    expect(instance.queueState('pv')?.message).toBe(
      'the claim "default/data" of the volume still exists and has no other volume',
    )
    expect(fixture.storage.assets.has('pv')).toBe(true)
    const body = { metadata: { finalizers: null } }
    await fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: 'data' },
      { type: 'merge', body },
    )
    await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'data' })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
  })

  it('PROV-14 deletes the volume if its claim is bound to another volume', async () => {
    const claim = await fixture.createClaim('data', { spec: { volumeName: 'other' } })
    await createVolume('pv', { spec: { claimRef: { namespace: 'default', name: 'data', uid: claim.metadata.uid } } })
    await fixture.release('pv')
    fixture.start()
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
  })

  it('PROV-14 deletes the volume if only a later claim of the same name exists', async () => {
    await fixture.createClaim('data', { provisioner: 'x.y/z' })
    await createVolume('pv', { spec: { claimRef: { namespace: 'default', name: 'data', uid: 'an-earlier-one' } } })
    await fixture.release('pv')
    fixture.start()
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
  })

  it('PROV-14 keeps the volume if its policy was changed to Retain and the cache is behind', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    let isChanged = false
    const intercept = async (verb: string) => {
      if (verb !== 'get' || isChanged) return
      isChanged = true
      await patchVolume('pv', { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
    }
    fixture.start({ intercept })
    await fixture.waitUntil(
      async () => !(await readFinalizers('pv')).includes(FINALIZER),
      'the finalizer to be removed',
    )
    expect(isChanged).toBe(true)
    expect(fixture.storage.deletes).toEqual([])
  })

  it('PROV-14 keeps the volume and records an event while it is attached to a node', async () => {
    await createVolume('pv')
    await fixture.release('pv')
    await fixture.client.create(volumeAttachmentKind, {
      metadata: { name: 'attached' },
      spec: { attacher: DISKS, nodeName: 'node-1', source: { persistentVolumeName: 'pv' } },
    })
    await fixture.client.create(volumeAttachmentKind, {
      metadata: { name: 'unrelated' },
      spec: { attacher: DISKS, nodeName: 'node-1', source: { persistentVolumeName: 'other' } },
    })
    const instance = fixture.start()
    await fixture.waitUntil(() => instance.queueState('pv')?.is === 'stuck', 'the volume to be stuck')
    expect(instance.queueState('pv')?.message).toBe('persistentvolume pv is still attached to node node-1')
    expect(fixture.events).toMatchObject([{ reason: 'VolumeFailedDelete' }])
    expect(fixture.storage.deletes).toEqual([])
    await fixture.client.delete(volumeAttachmentKind, { name: 'attached' })
    await fixture.waitUntil(isDeleted('pv'), 'the deletion of the volume', fixture.runOtherControllers)
  })
})
