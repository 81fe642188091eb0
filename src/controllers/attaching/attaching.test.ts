// Controllers and attacher together: from a pod on a node to a published volume, and back.
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { unavailable } from '../../api/status-error.ts'
import { attachmentOn, aWorld, DRIVER, FINALIZER, inUseName, type World } from './attaching.fixture.ts'
import { createAttachingMetrics } from './metrics.ts'

let world: World
afterEach(async () => {
  expect(world.violations).toEqual([])
  await world.close()
})

const isAttachedTo = async (nodeName: string) => (await world.attachment(nodeName))?.status?.attached === true
const isMountedOn = (nodeName: string) => world.mounts.get(nodeName)!.has(inUseName())

async function mountedOn(nodeName: string): Promise<void> {
  await world.until(
    () => isMountedOn(nodeName),
    `the volume on ${nodeName}`,
    () => world.agents(),
  )
}

describe('a pod on a node', () => {
  it('SYS-18 gets its volume attached, published, and listed in the node’s status', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start()
    await world.aPod('web', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    expect(await world.attachment('left')).toMatchObject({
      metadata: { name: attachmentOn('left'), finalizers: [FINALIZER] },
      spec: { attacher: DRIVER, nodeName: 'left', source: { persistentVolumeName: 'data' } },
      status: { attached: true, attachmentMetadata: { device: '/dev/vol-data' } },
    })
    expect((await world.volume())?.metadata.finalizers).toContain('external-attacher/disks-example-com')
    expect(world.publishedOn()).toEqual(['id-left'])
    await mountedOn('left')
    expect((await world.node('left'))?.status?.volumesAttached).toEqual([{ name: inUseName(), devicePath: '' }])
    expect(world.events).toEqual([
      {
        about: 'web',
        type: 'Normal',
        reason: 'SuccessfulAttachVolume',
        message: 'AttachVolume.Attach succeeded for volume "data"',
      },
    ])
  })

  it('SYS-18 keeps the attachment until its node has unmounted the volume', async () => {
    world = await aWorld()
    await world.aVolume()
    const process = await world.start()
    await world.aPod('web', 'left')
    await mountedOn('left')
    await world.deletePod('web')
    await world.settle()
    expect(process.standing('data')).toMatchObject({ is: 'stuck', because: 'node left still has the volume mounted' })
    expect((await world.attachment('left'))?.metadata.deletionTimestamp).toBeUndefined()

    await world.agents()
    await world.until(async () => (await world.attachments()).length === 0, 'the attachment to be deleted')
    expect(world.publishedOn()).toEqual([])
    await world.settle()
    expect((await world.node('left'))?.status?.volumesAttached).toBeUndefined()
  })

  it('SYS-18 no longer needs its volume once it has terminated', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start()
    await world.aPod('web', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    await world.patchStatus(podKind, 'web', { phase: 'Succeeded' })
    await world.until(async () => (await world.attachments()).length === 0, 'the attachment to be deleted')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 shares the attachment with other pods of its node until the last is deleted', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start()
    await world.aPod('first', 'left')
    await world.aPod('second', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    await world.deletePod('first')
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.deletePod('second')
    await world.until(async () => (await world.attachments()).length === 0, 'the attachment to be deleted')
    expect(world.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')).toHaveLength(1)
  })

  it('SYS-18 waits for its node to exist', async () => {
    world = await aWorld()
    await world.aVolume()
    const process = await world.start()
    await world.aPod('web', 'later')
    await world.settle()
    expect(process.standing('data')?.because).toBe('node later, where a pod needs the volume, does not exist')
    await world.client.create(nodeKind, { metadata: { name: 'later' } } as never)
    await world.until(async () => (await world.attachments()).length === 1, 'the attachment')
  })

  it('SYS-18 gets one event per failure of the driver', async () => {
    world = await aWorld()
    await world.aVolume()
    world.fake.script.setRules([
      { method: 'ControllerPublishVolume', times: 2, effect: { do: 'fail', code: 'INTERNAL', message: 'no cable' } },
    ])
    await world.start({ attacher: { retryIntervalStartMs: 4_000 } })
    await world.aPod('web', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    await world.settle()
    expect(world.reasons()).toEqual(['FailedAttachVolume', 'FailedAttachVolume', 'SuccessfulAttachVolume'])
    expect(world.events[0]?.message).toBe(
      'AttachVolume.Attach failed for volume "data" : rpc error: code = Internal desc = no cable',
    )
    expect((await world.attachment('left'))?.status?.attachError).toBeUndefined()
  })

  it('SYS-18 needs no attachment if attachRequired is false', async () => {
    world = await aWorld()
    await world.aDriverObject(false)
    await world.aVolume()
    await world.start()
    await world.aPod('web', 'left')
    await world.settle()
    expect(await world.attachments()).toEqual([])
  })
})

describe('a single-node volume', () => {
  it('SYS-18 is attached to the second node after it was detached from the first, with an event', async () => {
    world = await aWorld()
    await world.aVolume()
    const process = await world.start()
    await world.aPod('first', 'left')
    await mountedOn('left')
    await world.aPod('second', 'right')
    await world.settle()
    expect(await world.attachment('right')).toBeUndefined()
    expect(process.standing('data')?.because).toBe(
      'volume data is attached to node left and can be attached to one node only',
    )
    expect(world.events.at(-1)).toEqual({
      about: 'second',
      type: 'Warning',
      reason: 'FailedAttachVolume',
      message: 'Multi-Attach error for volume "data" Volume is already used by pod(s) first',
    })
    const toldBefore = world.events.length
    await world.settle()
    expect(world.events).toHaveLength(toldBefore)

    await world.deletePod('first')
    await mountedOn('right')
    expect(isMountedOn('left')).toBe(false)
    expect(world.publishedOn()).toEqual(['id-right'])
    expect(world.reasons().at(-1)).toBe('SuccessfulAttachVolume')
  })

  it('SYS-18 goes to the older of two pods', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.aPod('b-old', 'right')
    await world.server.clock.advance(2_000)
    await world.aPod('a-new', 'left')
    await world.start()
    await world.until(() => isAttachedTo('right'), 'the attachment')
    await world.settle()
    expect((await world.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['right'])
  })

  it('SYS-18 is not published on a second node for a user-created attachment', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start()
    await world.aPod('web', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    await world.server.post('/apis/storage.k8s.io/v1/volumeattachments', {
      metadata: { name: 'by-hand' },
      spec: { attacher: DRIVER, nodeName: 'right', source: { persistentVolumeName: 'data' } },
    })
    await world.until(
      async () => (await world.attachments()).find(({ metadata }) => metadata.name === 'by-hand')?.status?.attachError,
      'the rejection',
    )
    expect(world.publishedOn()).toEqual(['id-left'])

    await world.deletePod('web')
    await world.until(() => world.publishedOn().join() === 'id-right', 'the user-created attachment')
  })

  it('SYS-18 stays on its node if the response to the create was lost', async () => {
    world = await aWorld()
    await world.aVolume()
    let isLost = false
    let show = () => {}
    const isShown = new Promise<void>((resolve) => {
      show = resolve
    })
    await world.start({
      async intercept(verb, args) {
        if (verb !== 'create' || isLost) return
        isLost = true
        await world.client.create(args[0], args[1])
        await world.deletePod('first')
        await world.aPod('second', 'right')
        throw unavailable('no response')
      },
      beforeEvent: async () => {
        if (isLost) await isShown
      },
    })
    await world.aPod('first', 'left')
    await world.until(() => isLost, 'the lost response')
    await world.settle()
    await world.server.clock.advance(10_000)
    await world.settle()
    expect((await world.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['left'])
    show()
    await world.until(() => isAttachedTo('right'), 'the attachment of the second pod')
    expect((await world.attachments()).map(({ spec }) => spec.nodeName)).toEqual(['right'])
  })
})

it('SYS-18 attaches a multi-node volume to all its nodes', async () => {
  world = await aWorld()
  await world.aVolume('data', { accessModes: ['ReadWriteMany'] })
  await world.start()
  await world.aPod('first', 'left')
  await world.aPod('second', 'right')
  await world.until(() => world.publishedOn().length === 2, 'both attachments')
  expect(world.publishedOn().sort()).toEqual(['id-left', 'id-right'])
})

describe('limits', () => {
  it('SYS-18 respects the driver’s volume limit of a node', async () => {
    world = await aWorld()
    const names = ['v1', 'v2', 'v3', 'v4', 'v5']
    for (const name of names) await world.aVolume(name)
    const body = {
      spec: { drivers: [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [], allocatable: { count: 2 } }] },
    }
    await world.client.patch(csiNodeKind, { name: 'left' }, { type: 'merge', body })
    await world.start()
    for (const name of names) await world.aPod(`of-${name}`, 'left', [name])
    await world.settle()
    expect(await world.attachments()).toHaveLength(2)
    const waiting = world.events.filter(({ reason }) => reason === 'FailedAttachVolume')
    expect(waiting).toHaveLength(3)
    expect(waiting[0]?.message).toContain("node left has reached the driver's limit of 2 volumes")

    const [one] = await world.attachments()
    await world.deletePod(`of-${one?.spec.source.persistentVolumeName}`)
    await world.until(
      async () =>
        (await world.attachments()).length === 2 &&
        (await world.attachments()).every(({ metadata }) => metadata.uid !== one?.metadata.uid),
      'the next one',
    )
    await world.settle()
    expect(await world.attachments()).toHaveLength(2)
  })
})

describe('a lost node', () => {
  const MINUTE_MS = 60_000

  async function mountedThenLost() {
    world = await aWorld()
    const registry = new Registry()
    await world.aVolume()
    const process = await world.start({ metrics: createAttachingMetrics(registry) })
    await world.aPod('web', 'left')
    await mountedOn('left')
    await world.setReady('left', 'Unknown')
    return { process, registry }
  }

  it('SYS-18 has its volumes force-detached after six minutes', async () => {
    const { process, registry } = await mountedThenLost()
    await world.deletePod('web')
    await world.aPod('next', 'right')
    await world.settle()
    expect(process.standing('data')).toMatchObject({ is: 'waiting' })
    await world.server.clock.advance(6 * MINUTE_MS - 2_000)
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.server.clock.advance(3_000)
    await world.until(() => world.publishedOn().join() === 'id-right', 'the other node')
    expect(await registry.metrics()).toContain('attachdetach_controller_forced_detaches{reason="timeout"} 1')
  })

  it('SYS-18 that recovers in time keeps its volumes until it has unmounted them', async () => {
    await mountedThenLost()
    await world.deletePod('web')
    await world.settle()
    await world.server.clock.advance(5 * MINUTE_MS)
    await world.setReady('left', 'True')
    await world.settle()
    await world.server.clock.advance(20 * MINUTE_MS)
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.agents()
    await world.until(() => world.publishedOn().length === 0, 'the detach')
  })

  it('SYS-18 that was deleted counts as lost', async () => {
    await mountedThenLost()
    await world.client.delete(nodeKind, { name: 'left' })
    await world.deletePod('web')
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.server.clock.advance(6 * MINUTE_MS + 1)
    await world.until(async () => (await world.attachments()).length === 0, 'the detach')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 that was recreated counts as lost until its agent reports', async () => {
    await mountedThenLost()
    await world.client.delete(nodeKind, { name: 'left' })
    await world.server.clock.advance(1_000)
    await world.client.create(nodeKind, { metadata: { name: 'left' } } as never)
    await world.deletePod('web')
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    const never = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusNeverUpdated' }]
    await world.patchStatus(nodeKind, 'left', { conditions: never })
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.patchStatus(nodeKind, 'left', { conditions: [{ type: 'Ready', status: 'False', reason: 'Starting' }] })
    await world.until(() => world.publishedOn().length === 0, 'the detach after the report')
  })

  it('SYS-18 that never reported and is older than the attachment has nothing mounted', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.client.create(nodeKind, { metadata: { name: 'mute' } } as never)
    await world.client.create(csiNodeKind, {
      metadata: { name: 'mute' },
      spec: { drivers: [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [] }] },
    } as never)
    await world.start()
    await world.aPod('web', 'mute')
    await world.until(() => world.publishedOn().length === 1, 'the attach')
    await world.deletePod('web')
    await world.until(() => world.publishedOn().length === 0, 'the detach')
  })

  it('SYS-18 that recovered keeps its volumes despite a controller with a stale cache', async () => {
    world = await aWorld()
    await world.aVolume()
    let wake: (() => Promise<unknown>) | undefined
    await world.start({
      async intercept(verb) {
        if (verb === 'commit') await wake?.()
      },
    })
    await world.aPod('web', 'left')
    await mountedOn('left')
    await world.setReady('left', 'Unknown')
    await world.deletePod('web')
    await world.settle()
    wake = async () => {
      wake = undefined
      await world.setReady('left', 'True')
    }
    await world.server.clock.advance(6 * MINUTE_MS + 1)
    await world.until(() => wake === undefined, 'the force-detach attempt')
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
  })

  it('SYS-18 has its volumes detached at once when it is out of service', async () => {
    const { registry } = await mountedThenLost()
    await world.patchStatus(podKind, 'web', {
      containerStatuses: [
        { name: 'main', ready: true, restartCount: 0, image: '', imageID: '', state: { running: {} } },
      ],
    })
    await world.client.delete(podKind, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 30 })
    await world.aPod('next', 'right')
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }]
    await world.client.patch(nodeKind, { name: 'left' }, { type: 'merge', body: { spec: { taints } } })
    await world.settle()
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-right'])
    expect(await registry.metrics()).toContain('attachdetach_controller_forced_detaches{reason="out-of-service"} 1')
  })
})

it('SYS-18 exports the Kubernetes metrics', async () => {
  world = await aWorld()
  const registry = new Registry()
  await world.aVolume()
  await world.start({ metrics: createAttachingMetrics(registry) })
  await world.aPod('first', 'left')
  await world.aPod('second', 'left')
  await world.until(() => isAttachedTo('left'), 'the attachment')
  const text = await registry.metrics()
  const plugin = 'kubernetes.io/csi:disks.example.com'
  expect(text).toContain(
    `attachdetach_controller_total_volumes{plugin_name="${plugin}",state="desired_state_of_world"} 1`,
  )
  expect(text).toContain(
    `attachdetach_controller_total_volumes{plugin_name="${plugin}",state="actual_state_of_world"} 1`,
  )
  expect(text).toContain(`storage_count_attachable_volumes_in_use{node="left",volume_plugin="${plugin}"} 2`)
})

describe('status.volumesAttached of a node', () => {
  it('SYS-18 is restored after an edit and keeps volumes of other plugins', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start()
    await world.aPod('web', 'left')
    await mountedOn('left')
    const other = { name: 'example.com/other', devicePath: '/dev/x' }
    await world.patchStatus(nodeKind, 'left', { volumesAttached: [other] })
    await world.settle()
    expect((await world.node('left'))?.status?.volumesAttached).toEqual([other, { name: inUseName(), devicePath: '' }])
  })

  it('SYS-18 keeps a volume whose mount is reported during the detach', async () => {
    world = await aWorld()
    await world.aVolume()
    let isLate = false
    await world.start({
      async intercept(verb) {
        if (verb !== 'commit' || isLate || !(await isAttachedTo('left'))) return
        isLate = true
        await world.patchStatus(nodeKind, 'left', { volumesInUse: [inUseName()] })
      },
    })
    await world.aPod('web', 'left')
    await world.until(() => isAttachedTo('left'), 'the attachment')
    await world.deletePod('web')
    await world.until(() => isLate, 'the attempt to detach')
    await world.settle()
    await world.server.clock.advance(60_000)
    await world.settle()
    expect(world.publishedOn()).toEqual(['id-left'])
    await world.agents()
    await world.until(() => world.publishedOn().length === 0, 'the detach')
  })
})

it('SYS-18 deletes the attachment of a force-deleted volume once it is unmounted', async () => {
  world = await aWorld({ controller: ['CREATE_DELETE_VOLUME'] })
  await world.aVolume()
  await world.start()
  await world.aPod('web', 'left')
  await world.until(() => isAttachedTo('left'), 'the attachment')
  await world.patchStatus(nodeKind, 'left', { volumesInUse: [inUseName()] })
  const body = { metadata: { finalizers: null } }
  await world.client.delete(persistentVolumeKind, { name: 'data' })
  await world.client.patch(persistentVolumeKind, { name: 'data' }, { type: 'merge', body })
  await world.settle()
  expect(await world.attachments()).toHaveLength(1)
  await world.patchStatus(nodeKind, 'left', { volumesInUse: null })
  await world.until(async () => (await world.attachments()).length === 0, 'the attachment to be deleted')
})

it('SYS-18 does not use an attachment of a volume that was recreated with another volumeHandle', async () => {
  world = await aWorld()
  await world.aVolume()
  // As after a crash: the attachment was created, and the volume deleted before it was attached.
  const leftover = { attacher: DRIVER, nodeName: 'left', source: { persistentVolumeName: 'data' } }
  await world.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentOn('left', 'vol-old') },
    spec: leftover,
  } as never)
  await world.start({ only: 'attacher' })
  await world.settle()
  expect(world.publishedOn()).toEqual([])
  const [left] = await world.attachments()
  expect(left?.status?.attachError?.message).toContain(
    'persistentvolume "data" was recreated with another volumeHandle',
  )
  await world.start({ only: 'controllers' })
  await world.until(async () => (await world.attachments()).length === 0, 'the stale attachment to be deleted')
  await world.aPod('web', 'left')
  await mountedOn('left')
  expect((await world.attachments()).map(({ metadata }) => metadata.name)).toEqual([attachmentOn('left')])
})
