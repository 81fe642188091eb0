// The attacher alone: attachments are made and deleted by hand.
import { afterEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { secretKind } from '../../../api/kinds/secret/secret.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { NODE_ID } from '../../../volumes/attachment-names.ts'
import { attachmentOn, aWorld, DRIVER, FINALIZER, type World } from '../attaching.fixture.ts'

let world: World
afterEach(async () => {
  await world.checkHeld()
  expect(world.crimes).toEqual([])
  await world.close()
})

const anAttachment = (nodeName = 'left', more: object = {}) =>
  world.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentOn(nodeName), ...more },
    spec: { attacher: DRIVER, nodeName, source: { persistentVolumeName: 'data' } },
  } as never)
const deleteAttachment = (nodeName = 'left') =>
  world.client.delete(volumeAttachmentKind, { name: attachmentOn(nodeName) })
const attached = async (nodeName = 'left') => (await world.attachment(nodeName))?.status?.attached === true
const isGone = async (nodeName = 'left') => (await world.attachment(nodeName)) === undefined
const publishes = () => world.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')
const only = { only: 'attacher' } as const

describe('publishing', () => {
  it('SYS-18 says what it is about to do before it asks the driver', async () => {
    world = await aWorld()
    await world.aVolume()
    world.fake.script.setRules([{ method: 'ControllerPublishVolume', effect: { do: 'hang' } }])
    await world.start(only)
    await anAttachment()
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    expect((await world.attachment('left'))?.metadata).toMatchObject({
      finalizers: [FINALIZER],
      annotations: { [NODE_ID]: 'id-left' },
    })
    expect((await world.volume())?.metadata.finalizers).toContain(FINALIZER)
    expect(await attached()).toBe(false)
    world.fake.script.setRules([])
    world.fake.script.release()
    await world.until(() => attached(), 'the attachment')
  })

  it('SYS-18 hands over what the volume says, with the secrets it names, which appear nowhere', async () => {
    world = await aWorld({ secretKeys: ['password'] })
    const csi = {
      readOnly: true,
      volumeAttributes: { tier: 'gold' },
      controllerPublishSecretRef: { namespace: 'default', name: 'login' },
    }
    await world.aVolume('data', { csi })
    await world.start(only)
    await anAttachment()
    const errorOf = async () => (await world.attachment('left'))?.status?.attachError
    await world.until(async () => (await errorOf()) !== undefined, 'the complaint')
    expect(await errorOf()).toMatchObject({ message: expect.stringContaining('secret login in namespace default') })
    expect(publishes()).toEqual([])

    const password = Buffer.from('hunter-two').toString('base64')
    await world.client.create(secretKind, {
      metadata: { namespace: 'default', name: 'login' },
      data: { password },
    } as never)
    world.fake.script.setRules([
      {
        method: 'ControllerPublishVolume',
        nth: 1,
        effect: { do: 'fail', code: 'UNAUTHENTICATED', message: 'not hunter-two' },
      },
    ])
    await world.until(async () => (await errorOf())?.errorCode === 16, 'the refusal')
    expect((await errorOf())?.message).toBe('rpc error: code = Unauthenticated desc = not ***stripped***')
    await world.until(() => attached(), 'the attachment')
    expect(publishes().at(-1)?.request).toMatchObject({ readonly: true, volumeContext: { tier: 'gold' } })
    expect(JSON.stringify(await world.attachments())).not.toContain('hunter')
  })

  it('SYS-18 waits for the driver to be on the node, and goes on when it is', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.client.delete(csiNodeKind, { name: 'left' })
    const process = await world.start(only)
    await anAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attachError, 'the complaint')
    await world.settle()
    expect(process.standing(attachmentOn('left'))).toMatchObject({
      is: 'stuck',
      because: 'CSINode left does not contain driver disks.example.com',
    })
    expect((await world.attachment('left'))?.metadata.finalizers).toBeUndefined()
    const drivers = [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [] }]
    await world.client.create(csiNodeKind, { metadata: { name: 'left' }, spec: { drivers } } as never)
    await world.settle()
    expect(await attached()).toBe(true)
  })

  it('SYS-18 refuses a volume that is being deleted', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.client.delete(persistentVolumeKind, { name: 'data' })
    await world.start(only)
    await anAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attachError, 'the complaint')
    expect((await world.attachment('left'))?.status?.attachError?.message).toBe(
      'PersistentVolume "data" is marked for deletion',
    )
    expect(publishes()).toEqual([])
  })

  it('SYS-18 tries again, later and later, and says that the driver may still be at work where it may', async () => {
    world = await aWorld()
    await world.aVolume()
    world.fake.script.setRules([
      { method: 'ControllerPublishVolume', effect: { do: 'fail', code: 'DEADLINE_EXCEEDED', message: 'slow' } },
    ])
    const process = await world.start(only)
    await anAttachment()
    await world.until(() => process.standing(attachmentOn('left'))?.failures === 4, 'four tries')
    expect(process.standing(attachmentOn('left'))?.because).toContain('(the driver may still be at work)')
    await deleteAttachment()
    await world.until(() => isGone(), 'the end, unpublished to be sure')
    expect(world.fake.record.calls.at(-1)?.method).toBe('ControllerUnpublishVolume')
  })

  it('SYS-18 leaves the old node first where a node was made anew under its name', async () => {
    world = await aWorld({ nodes: [{ id: 'id-left' }, { id: 'id-new' }] })
    await world.aVolume()
    world.fake.script.setRules([
      { method: 'ControllerPublishVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerPublishVolume', nth: 2, effect: { do: 'fail', code: 'INTERNAL' } },
    ])
    await world.start(only)
    await anAttachment()
    await world.until(() => publishes().length === 2, 'two tries')
    await world.client.delete(csiNodeKind, { name: 'left' })
    const drivers = [{ name: DRIVER, nodeID: 'id-new', topologyKeys: [] }]
    await world.client.create(csiNodeKind, { metadata: { name: 'left' }, spec: { drivers } } as never)
    await world.until(() => attached(), 'the attachment')
    expect(world.publishedOn()).toEqual(['id-new'])
    await deleteAttachment()
    await world.until(() => isGone(), 'the end')
  })
})

describe('unpublishing', () => {
  it('SYS-18 works when the node is gone: by the name it was published with', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment()
    await world.until(() => attached(), 'the attachment')
    await world.client.delete(csiNodeKind, { name: 'left' })
    await deleteAttachment()
    await world.until(() => isGone(), 'the end')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 shows why it fails, and keeps the attachment until it succeeds', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment()
    await world.until(() => attached(), 'the attachment')
    world.fake.script.setRules([
      {
        method: 'ControllerUnpublishVolume',
        times: 3,
        effect: { do: 'fail', code: 'INTERNAL', message: 'stuck screw' },
      },
    ])
    await deleteAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.detachError, 'the complaint')
    expect((await world.attachment('left'))?.status).toMatchObject({
      attached: true,
      detachError: { message: 'rpc error: code = Internal desc = stuck screw' },
    })
    await world.until(() => isGone(), 'the end')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 does not call the driver about an attachment it never published', async () => {
    world = await aWorld()
    await world.aVolume()
    await anAttachment('left', { finalizers: ['example.com/other'] })
    await deleteAttachment()
    await world.start(only)
    await world.settle()
    expect(world.fake.record.calls.filter(({ volume }) => volume === 'data')).toEqual([])
  })

  it('SYS-18 says so where the finalizer of someone else keeps the attachment', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment('left', { finalizers: ['example.com/other'] })
    await world.until(() => attached(), 'the attachment')
    await deleteAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attached === false, 'the word')
    expect((await world.attachment('left'))?.metadata.finalizers).toEqual(['example.com/other'])
    expect((await world.attachment('left'))?.status).toEqual({ attached: false })
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 holds the volume object until its last attachment is gone', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment()
    await world.until(() => attached(), 'the attachment')
    await world.client.delete(persistentVolumeKind, { name: 'data' })
    const body = { metadata: { '$deleteFromPrimitiveList/finalizers': ['kubernetes.io/pv-protection'] } }
    await world.client.patch(persistentVolumeKind, { name: 'data' }, { type: 'strategic', body })
    await world.settle()
    expect((await world.volume())?.metadata.finalizers).toEqual([FINALIZER])
    await deleteAttachment()
    await world.until(async () => (await world.volume()) === undefined, 'the end of the volume')
    expect(world.publishedOn()).toEqual([])
  })
})

describe('a driver that has nothing to publish', () => {
  it('SYS-18 has its volumes attached by saying so, and detached by letting them go', async () => {
    world = await aWorld({ controller: ['CREATE_DELETE_VOLUME'] })
    await world.aVolume()
    await world.start(only)
    await anAttachment()
    await world.until(() => attached(), 'the attachment')
    expect((await world.attachment('left'))?.metadata.finalizers).toBeUndefined()
    await deleteAttachment()
    expect(await isGone()).toBe(true)
    expect(publishes()).toEqual([])
  })

  it('SYS-18 lets go of attachments from the days when it had', async () => {
    world = await aWorld({ controller: ['CREATE_DELETE_VOLUME'] })
    await world.aVolume()
    await anAttachment('left', { finalizers: [FINALIZER] })
    await world.start(only)
    await deleteAttachment()
    await world.until(() => isGone(), 'the end')
  })
})

it('SYS-18 attachments of other drivers are left alone', async () => {
  world = await aWorld()
  await world.aVolume()
  await world.start(only)
  await world.client.create(volumeAttachmentKind, {
    metadata: { name: 'theirs' },
    spec: { attacher: 'other.example.com', nodeName: 'left', source: { persistentVolumeName: 'data' } },
  } as never)
  await world.settle()
  const [theirs] = await world.attachments()
  expect(theirs?.status).toEqual({ attached: false })
  expect(theirs?.metadata.finalizers).toBeUndefined()
})

it('SYS-18 a volume described in the attachment itself is attached too', async () => {
  world = await aWorld()
  await world.aVolume()
  await world.start(only)
  const inlineVolumeSpec = {
    accessModes: ['ReadWriteOnce'],
    csi: { driver: DRIVER, volumeHandle: 'vol-data' },
  }
  await world.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentOn('left') },
    spec: { attacher: DRIVER, nodeName: 'left', source: { inlineVolumeSpec } },
  } as never)
  await world.until(() => attached(), 'the attachment')
  expect(world.publishedOn()).toEqual(['id-left'])
  await anAttachment('right') // of the volume's own object, and the same storage
  await world.until(async () => (await world.attachment('right'))?.status?.attachError, 'the refusal')
  await deleteAttachment()
  await world.until(() => attached('right'), 'the next')
  expect(world.publishedOn()).toEqual(['id-right'])
})
