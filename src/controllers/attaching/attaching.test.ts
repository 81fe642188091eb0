// Runs the attach-detach controllers and the attacher together: pods on nodes cause volumes to be published and unpublished.
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { unavailable } from '../../api/status-error.ts'
import {
  type AttachingFixture,
  attachedName,
  attachmentNameOn,
  createAttachingFixture,
  DRIVER,
  FINALIZER,
} from './attaching.fixture.ts'
import { createAttachingMetrics } from './metrics.ts'

let fixture: AttachingFixture
afterEach(async () => {
  expect(fixture.violations).toEqual([])
  await fixture.close()
})

const isAttachedTo = async (nodeName: string) => (await fixture.attachment(nodeName))?.status?.attached === true
const isMountedOn = (nodeName: string) => fixture.mounts.get(nodeName)!.has(attachedName())

async function waitUntilMounted(nodeName: string): Promise<void> {
  await fixture.waitUntil(
    () => isMountedOn(nodeName),
    `the volume to be mounted on ${nodeName}`,
    () => fixture.runAgents(),
  )
}

describe('a volume that no pod uses', () => {
  it('SYS-18 is not enqueued, unlike a volume whose claim is used by a pod on a node', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.client.create(persistentVolumeKind, {
      metadata: { name: 'idle' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: DRIVER, volumeHandle: 'vol-idle' },
      },
    } as never)
    const keys = new Set<string>()
    await fixture.start({ component: 'controllers', onQueueChange: (key) => keys.add(key) })
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(async () => (await fixture.attachment('left')) !== undefined, 'the attachment')
    expect(keys).toContain('data')
    expect(keys).not.toContain('idle')
  })
})

describe('an attachment of a volume', () => {
  it('enqueues its volume when its status changes, but not for the finalizer and the annotation of the attacher', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    const keys: string[] = []
    await fixture.start({ component: 'controllers', onQueueChange: (key) => keys.push(key) })
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(async () => (await fixture.attachment('left')) !== undefined, 'the attachment')
    await fixture.settle()
    keys.length = 0
    const patchAttachment = (body: object, subresource?: string) =>
      fixture.client.patch(
        volumeAttachmentKind,
        { name: attachmentNameOn('left') },
        { type: 'strategic', body },
        subresource ? { subresource } : {},
      )
    await patchAttachment({ metadata: { finalizers: [FINALIZER], annotations: { 'example.com/node': 'left' } } })
    await fixture.settle()
    expect(keys).toEqual([])
    await patchAttachment({ status: { attached: true } }, 'status')
    await fixture.waitUntil(() => keys.includes('data') && keys.includes('left'), 'reconciles of volume and node')
    await patchAttachment({ metadata: { finalizers: null } }) // the attacher, which does not run, would remove it
  })
})

describe('a pod on a node', () => {
  it("SYS-18 has its volume attached, published, and listed in the node's status", async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    expect(await fixture.attachment('left')).toMatchObject({
      metadata: { name: attachmentNameOn('left'), finalizers: [FINALIZER] },
      spec: { attacher: DRIVER, nodeName: 'left', source: { persistentVolumeName: 'data' } },
      status: { attached: true, attachmentMetadata: { device: '/dev/vol-data' } },
    })
    expect((await fixture.volume())?.metadata.finalizers).toContain('external-attacher/disks-example-com')
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await waitUntilMounted('left')
    expect((await fixture.node('left'))?.status?.volumesAttached).toEqual([{ name: attachedName(), devicePath: '' }])
    expect(fixture.events).toEqual([
      {
        objectName: 'web',
        type: 'Normal',
        reason: 'SuccessfulAttachVolume',
        message: 'AttachVolume.Attach succeeded for volume "data"',
      },
    ])
  })

  it('SYS-18 keeps the attachment until its node has unmounted the volume', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    const instance = await fixture.start()
    await fixture.createPod('web', 'left')
    await waitUntilMounted('left')
    await fixture.deletePod('web')
    await fixture.settle()
    expect(instance.queueState('data')).toMatchObject({
      is: 'stuck',
      message: 'node left still has the volume mounted',
    })
    expect((await fixture.attachment('left'))?.metadata.deletionTimestamp).toBeUndefined()

    await fixture.runAgents()
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the attachment to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
    await fixture.settle()
    expect((await fixture.node('left'))?.status?.volumesAttached).toBeUndefined()
  })

  it('SYS-18 has its volume detached after it terminates', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    await fixture.patchStatus(podKind, 'web', { phase: 'Succeeded' })
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the attachment to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
  })

  it('SYS-18 shares the attachment with other pods of its node until the last is deleted', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('first', 'left')
    await fixture.createPod('second', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    await fixture.deletePod('first')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.deletePod('second')
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the attachment to be deleted')
    expect(fixture.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')).toHaveLength(1)
  })

  it('SYS-18 has no attachment until its node is created', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    const instance = await fixture.start()
    await fixture.createPod('web', 'later')
    await fixture.settle()
    expect(instance.queueState('data')?.message).toBe('node later, where a pod needs the volume, does not exist')
    expect(await fixture.attachments()).toEqual([])
    await fixture.client.create(nodeKind, { metadata: { name: 'later' } } as never)
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 1, 'the attachment to be created')
  })

  it('SYS-18 receives one event per driver failure', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    fixture.fake.script.setRules([
      {
        method: 'ControllerPublishVolume',
        times: 2,
        effect: { do: 'fail', code: 'INTERNAL', message: 'device is busy' },
      },
    ])
    await fixture.start({ attacher: { retryIntervalStartMs: 4_000 } })
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    await fixture.settle()
    expect(fixture.eventReasons()).toEqual(['FailedAttachVolume', 'FailedAttachVolume', 'SuccessfulAttachVolume'])
    expect(fixture.events[0]?.message).toBe(
      'AttachVolume.Attach failed for volume "data" : rpc error: code = Internal desc = device is busy',
    )
    expect((await fixture.attachment('left'))?.status?.attachError).toBeUndefined()
  })

  it('SYS-18 has no attachment if attachRequired is false', async () => {
    fixture = await createAttachingFixture()
    await fixture.createCSIDriver(false)
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('web', 'left')
    await fixture.settle()
    expect(await fixture.attachments()).toEqual([])
  })
})

describe('a single-node volume', () => {
  it('SYS-18 is attached to a second node only after it was detached from the first, and the second pod receives an event', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    const instance = await fixture.start()
    await fixture.createPod('first', 'left')
    await waitUntilMounted('left')
    await fixture.createPod('second', 'right')
    await fixture.settle()
    expect(await fixture.attachment('right')).toBeUndefined()
    expect(instance.queueState('data')?.message).toBe(
      'volume data is attached to node left and can be attached to one node only',
    )
    expect(fixture.events.at(-1)).toEqual({
      objectName: 'second',
      type: 'Warning',
      reason: 'FailedAttachVolume',
      message: 'Multi-Attach error for volume "data" Volume is already used by pod(s) first',
    })
    const eventCountBefore = fixture.events.length
    await fixture.settle()
    expect(fixture.events).toHaveLength(eventCountBefore)

    await fixture.deletePod('first')
    await waitUntilMounted('right')
    expect(isMountedOn('left')).toBe(false)
    expect(fixture.publishedNodeIds()).toEqual(['id-right'])
    expect(fixture.eventReasons().at(-1)).toBe('SuccessfulAttachVolume')
  })

  it("SYS-18 is attached to the older pod's node", async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.createPod('b-old', 'right')
    await fixture.server.clock.advance(2_000)
    await fixture.createPod('a-new', 'left')
    await fixture.start()
    await fixture.waitUntil(() => isAttachedTo('right'), 'the volume to be attached')
    await fixture.settle()
    expect((await fixture.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['right'])
  })

  it('SYS-18 is published on a second node for a user-created attachment only after it was detached from the first', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    await fixture.server.post('/apis/storage.k8s.io/v1/volumeattachments', {
      metadata: { name: 'user-created' },
      spec: { attacher: DRIVER, nodeName: 'right', source: { persistentVolumeName: 'data' } },
    })
    await fixture.waitUntil(
      async () =>
        (await fixture.attachments()).find(({ metadata }) => metadata.name === 'user-created')?.status?.attachError,
      'the attach error',
    )
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])

    await fixture.deletePod('web')
    await fixture.waitUntil(
      () => fixture.publishedNodeIds().join() === 'id-right',
      'the volume to be attached for the user-created attachment',
    )
  })

  it('SYS-18 is not attached to a second node while the cache lacks an attachment whose create response was lost', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    let isResponseLost = false
    let deliverEvents = () => {}
    const eventsDelivered = new Promise<void>((resolve) => {
      deliverEvents = resolve
    })
    await fixture.start({
      async intercept(verb, args) {
        if (verb !== 'create' || isResponseLost) return
        isResponseLost = true
        await fixture.client.create(args[0], args[1])
        await fixture.deletePod('first')
        await fixture.createPod('second', 'right')
        throw unavailable('no response')
      },
      beforeEvent: async () => {
        if (isResponseLost) await eventsDelivered
      },
    })
    await fixture.createPod('first', 'left')
    await fixture.waitUntil(() => isResponseLost, 'the lost response')
    await fixture.settle()
    await fixture.server.clock.advance(10_000)
    await fixture.settle()
    expect((await fixture.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['left'])
    deliverEvents()
    await fixture.waitUntil(() => isAttachedTo('right'), 'the volume to be attached for the second pod')
    expect((await fixture.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['right'])
  })
})

it('SYS-18 attaches a multi-node volume to all its nodes', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume('data', { accessModes: ['ReadWriteMany'] })
  await fixture.start()
  await fixture.createPod('first', 'left')
  await fixture.createPod('second', 'right')
  await fixture.waitUntil(() => fixture.publishedNodeIds().length === 2, 'the volume to be published on both nodes')
  expect(fixture.publishedNodeIds().sort()).toEqual(['id-left', 'id-right'])
})

describe('limits', () => {
  it('SYS-18 attaches no more volumes to a node than the driver allows', async () => {
    fixture = await createAttachingFixture()
    const names = ['v1', 'v2', 'v3', 'v4', 'v5']
    for (const name of names) await fixture.createVolume(name)
    const body = {
      spec: { drivers: [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [], allocatable: { count: 2 } }] },
    }
    await fixture.client.patch(csiNodeKind, { name: 'left' }, { type: 'merge', body })
    await fixture.start()
    for (const name of names) await fixture.createPod(`of-${name}`, 'left', [name])
    await fixture.settle()
    expect(await fixture.attachments()).toHaveLength(2)
    const failureEvents = fixture.events.filter(({ reason }) => reason === 'FailedAttachVolume')
    expect(failureEvents).toHaveLength(3)
    expect(failureEvents[0]?.message).toContain("node left has reached the driver's limit of 2 volumes")

    const [deletedAttachment] = await fixture.attachments()
    await fixture.deletePod(`of-${deletedAttachment?.spec.source.persistentVolumeName}`)
    await fixture.waitUntil(
      async () =>
        (await fixture.attachments()).length === 2 &&
        (await fixture.attachments()).every(({ metadata }) => metadata.uid !== deletedAttachment?.metadata.uid),
      'the next attachment',
    )
    await fixture.settle()
    expect(await fixture.attachments()).toHaveLength(2)
  })
})

describe('a lost node', () => {
  const MINUTE_MS = 60_000

  async function mountAndLoseNode() {
    fixture = await createAttachingFixture()
    const registry = new Registry()
    await fixture.createVolume()
    const instance = await fixture.start({ metrics: createAttachingMetrics(registry) })
    await fixture.createPod('web', 'left')
    await waitUntilMounted('left')
    await fixture.setReady('left', 'Unknown')
    return { instance, registry }
  }

  it('PLUS-11 keeps its volumes regardless of how long it is silent, and the queue state names the fence command', async () => {
    const { instance } = await mountAndLoseNode()
    await fixture.deletePod('web')
    await fixture.createPod('next', 'right')
    await fixture.settle()
    await fixture.server.clock.advance(60 * MINUTE_MS)
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    expect(instance.queueState('data')?.message).toContain('stowage node fence left --confirm-off')
  })

  it('PLUS-11 keeps its mounted volumes once it reports Ready, even if it has the out-of-service taint', async () => {
    await mountAndLoseNode()
    await fixture.setReady('left', 'True')
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }]
    await fixture.client.patch(nodeKind, { name: 'left' }, { type: 'merge', body: { spec: { taints } } })
    await fixture.deletePod('web')
    await fixture.createPod('next', 'right')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.runAgents()
    await fixture.waitUntil(() => fixture.publishedNodeIds().join() === 'id-right', 'the volume to move')
  })

  it('SYS-18 keeps its volumes after it recovers, until it has unmounted them', async () => {
    await mountAndLoseNode()
    await fixture.deletePod('web')
    await fixture.settle()
    await fixture.server.clock.advance(5 * MINUTE_MS)
    await fixture.setReady('left', 'True')
    await fixture.settle()
    await fixture.server.clock.advance(20 * MINUTE_MS)
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.runAgents()
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 0, 'the volume to be detached')
  })

  it('SYS-18 has its volumes force-detached after six minutes if the Node was deleted', async () => {
    const { registry } = await mountAndLoseNode()
    await fixture.client.delete(nodeKind, { name: 'left' })
    await fixture.deletePod('web')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.server.clock.advance(6 * MINUTE_MS + 1)
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the volume to be detached')
    expect(fixture.publishedNodeIds()).toEqual([])
    expect(await registry.metrics()).toContain('attachdetach_controller_forced_detaches{reason="timeout"} 1')
  })

  it('SYS-18 keeps its volumes after the Node was recreated, until its agent reports a status', async () => {
    await mountAndLoseNode()
    await fixture.client.delete(nodeKind, { name: 'left' })
    await fixture.server.clock.advance(1_000)
    await fixture.client.create(nodeKind, { metadata: { name: 'left' } } as never)
    await fixture.deletePod('web')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    const neverUpdated = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusNeverUpdated' }]
    await fixture.patchStatus(nodeKind, 'left', { conditions: neverUpdated })
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.patchStatus(nodeKind, 'left', {
      conditions: [{ type: 'Ready', status: 'False', reason: 'Starting' }],
    })
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 0, 'the volume to be detached after the report')
  })

  it('SYS-18 has its volumes detached immediately if it never reported a status and is older than the attachment', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.client.create(nodeKind, { metadata: { name: 'silent' } } as never)
    await fixture.client.create(csiNodeKind, {
      metadata: { name: 'silent' },
      spec: { drivers: [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [] }] },
    } as never)
    await fixture.start()
    await fixture.createPod('web', 'silent')
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 1, 'the volume to be attached')
    await fixture.deletePod('web')
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 0, 'the volume to be detached')
  })

  it('SYS-18 keeps its volumes if it recovers before a force-detach is committed', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    let recoverNode: (() => Promise<unknown>) | undefined
    await fixture.start({
      async intercept(verb) {
        if (verb === 'commit') await recoverNode?.()
      },
    })
    await fixture.createPod('web', 'left')
    await waitUntilMounted('left')
    await fixture.setReady('left', 'Unknown')
    await fixture.deletePod('web')
    await fixture.settle()
    recoverNode = async () => {
      recoverNode = undefined
      await fixture.setReady('left', 'True')
    }
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    await fixture.client.patch(nodeKind, { name: 'left' }, { type: 'merge', body: { spec: { taints } } })
    await fixture.waitUntil(() => recoverNode === undefined, 'the force-detach attempt')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
  })

  it('SYS-18 has its volumes detached immediately when it is out of service', async () => {
    const { registry } = await mountAndLoseNode()
    await fixture.patchStatus(podKind, 'web', {
      containerStatuses: [
        { name: 'main', ready: true, restartCount: 0, image: '', imageID: '', state: { running: {} } },
      ],
    })
    await fixture.client.delete(podKind, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 30 })
    await fixture.createPod('next', 'right')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }]
    await fixture.client.patch(nodeKind, { name: 'left' }, { type: 'merge', body: { spec: { taints } } })
    await fixture.settle()
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-right'])
    expect(await registry.metrics()).toContain('attachdetach_controller_forced_detaches{reason="out-of-service"} 1')
  })
})

it('SYS-11 exports the numbers of desired, attached and used volumes under their Kubernetes names', async () => {
  fixture = await createAttachingFixture()
  const registry = new Registry()
  await fixture.createVolume()
  await fixture.start({ metrics: createAttachingMetrics(registry) })
  await fixture.createPod('first', 'left')
  await fixture.createPod('second', 'left')
  await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
  const metrics = await registry.metrics()
  const plugin = 'kubernetes.io/csi:disks.example.com'
  expect(metrics).toContain(
    `attachdetach_controller_total_volumes{plugin_name="${plugin}",state="desired_state_of_world"} 1`,
  )
  expect(metrics).toContain(
    `attachdetach_controller_total_volumes{plugin_name="${plugin}",state="actual_state_of_world"} 1`,
  )
  expect(metrics).toContain(`storage_count_attachable_volumes_in_use{node="left",volume_plugin="${plugin}"} 2`)
})

describe('status.volumesAttached of a node', () => {
  it('SYS-18 is restored after a user edits it, and keeps volumes of other plugins', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start()
    await fixture.createPod('web', 'left')
    await waitUntilMounted('left')
    const foreignVolume = { name: 'example.com/other', devicePath: '/dev/x' }
    await fixture.patchStatus(nodeKind, 'left', { volumesAttached: [foreignVolume] })
    await fixture.settle()
    expect((await fixture.node('left'))?.status?.volumesAttached).toEqual([
      foreignVolume,
      { name: attachedName(), devicePath: '' },
    ])
  })

  it('SYS-18 keeps a volume whose mount is reported during the detach', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    let hasReportedMount = false
    await fixture.start({
      async intercept(verb) {
        if (verb !== 'commit' || hasReportedMount || !(await isAttachedTo('left'))) return
        hasReportedMount = true
        await fixture.patchStatus(nodeKind, 'left', { volumesInUse: [attachedName()] })
      },
    })
    await fixture.createPod('web', 'left')
    await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
    await fixture.deletePod('web')
    await fixture.waitUntil(() => hasReportedMount, 'the attempt to detach')
    await fixture.settle()
    await fixture.server.clock.advance(60_000)
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
    await fixture.runAgents()
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 0, 'the volume to be detached')
  })
})

it('SYS-18 keeps an attachment whose mount is reported while the volume is detached from another node', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume('data', { accessModes: ['ReadWriteMany'] })
  const firstProcess = await fixture.start()
  await fixture.createPod('first', 'left')
  await fixture.createPod('second', 'right')
  await fixture.waitUntil(() => fixture.publishedNodeIds().length === 2, 'the volume to be published on both nodes')
  await fixture.settle()
  await firstProcess.stop()
  await fixture.deletePod('first')
  await fixture.deletePod('second')
  let hasReportedMount = false
  await fixture.start({
    async intercept(verb) {
      // A delete is the second write of a detach on a server without atomic commits.
      if ((verb !== 'commit' && verb !== 'delete') || hasReportedMount) return
      hasReportedMount = true
      await fixture.patchStatus(nodeKind, 'right', { volumesInUse: [attachedName()] })
      await fixture.settle() // until the cache contains the change
    },
  })
  await fixture.waitUntil(() => fixture.publishedNodeIds().length < 2, 'the first detach')
  await fixture.settle()
  await fixture.server.clock.advance(60_000)
  await fixture.settle()
  expect(fixture.publishedNodeIds()).toEqual(['id-right'])
})

it('SYS-18 deletes the attachment of a force-deleted volume once it is unmounted', async () => {
  fixture = await createAttachingFixture({ controller: ['CREATE_DELETE_VOLUME'] })
  await fixture.createVolume()
  await fixture.start()
  await fixture.createPod('web', 'left')
  await fixture.waitUntil(() => isAttachedTo('left'), 'the volume to be attached')
  await fixture.patchStatus(nodeKind, 'left', { volumesInUse: [attachedName()] })
  const body = { metadata: { finalizers: null } }
  await fixture.client.delete(persistentVolumeKind, { name: 'data' })
  await fixture.client.patch(persistentVolumeKind, { name: 'data' }, { type: 'merge', body })
  await fixture.settle()
  expect(await fixture.attachments()).toHaveLength(1)
  await fixture.patchStatus(nodeKind, 'left', { volumesInUse: null })
  await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the attachment to be deleted')
})

it('SYS-18 does not use an attachment of a volume that was recreated with another volumeHandle', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume()
  // The state after a crash between the creation of the attachment and the attach, if the volume was then recreated.
  await fixture.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentNameOn('left', 'vol-old') },
    spec: { attacher: DRIVER, nodeName: 'left', source: { persistentVolumeName: 'data' } },
  } as never)
  await fixture.start({ component: 'attacher' })
  await fixture.settle()
  expect(fixture.publishedNodeIds()).toEqual([])
  const [staleAttachment] = await fixture.attachments()
  expect(staleAttachment?.status?.attachError?.message).toContain(
    'persistentvolume "data" was recreated with another volumeHandle',
  )
  await fixture.start({ component: 'controllers' })
  await fixture.waitUntil(async () => (await fixture.attachments()).length === 0, 'the stale attachment to be deleted')
  await fixture.createPod('web', 'left')
  await waitUntilMounted('left')
  expect((await fixture.attachments()).map(({ metadata }) => metadata.name)).toEqual([attachmentNameOn('left')])
})
