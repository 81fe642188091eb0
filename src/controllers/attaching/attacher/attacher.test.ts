// The attacher without the controllers: the tests create and delete attachments.
import { afterEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { secretKind } from '../../../api/kinds/secret/secret.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { NODE_ID } from '../../../volumes/attachment-names.ts'
import { attachmentOn, aWorld, DRIVER, FINALIZER, type World } from '../attaching.fixture.ts'

let world: World
afterEach(async () => {
  await world.checkFinalizers()
  expect(world.violations).toEqual([])
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
  it('SYS-18 saves finalizers and node ID before it calls the driver', async () => {
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

  it('SYS-18 sends the volume’s attributes and secrets, and strips the secrets from errors', async () => {
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
    await world.until(async () => (await errorOf()) !== undefined, 'the error')
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
    await world.until(async () => (await errorOf())?.errorCode === 16, 'the rejection')
    expect((await errorOf())?.message).toBe('rpc error: code = Unauthenticated desc = not ***stripped***')
    await world.until(() => attached(), 'the attachment')
    expect(publishes().at(-1)?.request).toMatchObject({ readonly: true, volumeContext: { tier: 'gold' } })
    expect(JSON.stringify(await world.attachments())).not.toContain('hunter')
  })

  it('SYS-18 waits until the CSINode has the driver', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.client.delete(csiNodeKind, { name: 'left' })
    const process = await world.start(only)
    await anAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attachError, 'the error')
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

  it('SYS-18 rejects a volume that is being deleted', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.client.delete(persistentVolumeKind, { name: 'data' })
    await world.start(only)
    await anAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attachError, 'the error')
    expect((await world.attachment('left'))?.status?.attachError?.message).toBe(
      'PersistentVolume "data" is marked for deletion',
    )
    expect(publishes()).toEqual([])
  })

  it('SYS-18 retries with backoff and unpublishes after an uncertain error', async () => {
    world = await aWorld()
    await world.aVolume()
    world.fake.script.setRules([
      { method: 'ControllerPublishVolume', effect: { do: 'fail', code: 'DEADLINE_EXCEEDED', message: 'slow' } },
    ])
    const process = await world.start(only)
    await anAttachment()
    await world.until(() => process.standing(attachmentOn('left'))?.failures === 4, 'four tries')
    expect(process.standing(attachmentOn('left'))?.because).toContain('(the driver may still be working on it)')
    await deleteAttachment()
    await world.until(() => isGone(), 'the unpublish')
    expect(world.fake.record.calls.at(-1)?.method).toBe('ControllerUnpublishVolume')
  })

  it('SYS-18 unpublishes from the old node ID when a node was recreated', async () => {
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
    await world.until(() => isGone(), 'the attachment to be deleted')
  })
})

describe('unpublishing', () => {
  it('SYS-18 uses the saved node ID when the node was deleted', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment()
    await world.until(() => attached(), 'the attachment')
    await world.client.delete(csiNodeKind, { name: 'left' })
    await deleteAttachment()
    await world.until(() => isGone(), 'the attachment to be deleted')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 saves the error and keeps the attachment until it succeeds', async () => {
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
    await world.until(async () => (await world.attachment('left'))?.status?.detachError, 'the error')
    expect((await world.attachment('left'))?.status).toMatchObject({
      attached: true,
      detachError: { message: 'rpc error: code = Internal desc = stuck screw' },
    })
    await world.until(() => isGone(), 'the attachment to be deleted')
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 makes no call for an attachment that was never published', async () => {
    world = await aWorld()
    await world.aVolume()
    await anAttachment('left', { finalizers: ['example.com/other'] })
    await deleteAttachment()
    await world.start(only)
    await world.settle()
    expect(world.fake.record.calls.filter(({ volume }) => volume === 'data')).toEqual([])
  })

  it('SYS-18 marks the attachment as detached if another finalizer keeps it', async () => {
    world = await aWorld()
    await world.aVolume()
    await world.start(only)
    await anAttachment('left', { finalizers: ['example.com/other'] })
    await world.until(() => attached(), 'the attachment')
    await deleteAttachment()
    await world.until(async () => (await world.attachment('left'))?.status?.attached === false, 'the status')
    expect((await world.attachment('left'))?.metadata.finalizers).toEqual(['example.com/other'])
    expect((await world.attachment('left'))?.status).toEqual({ attached: false })
    expect(world.publishedOn()).toEqual([])
  })

  it('SYS-18 keeps the finalizer on the volume until its last attachment is deleted', async () => {
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
    await world.until(async () => (await world.volume()) === undefined, 'the volume to be deleted')
    expect(world.publishedOn()).toEqual([])
  })
})

describe('a driver without PUBLISH_UNPUBLISH_VOLUME', () => {
  it('SYS-18 has its attachments marked as attached without a call', async () => {
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

  it('SYS-18 has finalizers of an earlier driver version removed', async () => {
    world = await aWorld({ controller: ['CREATE_DELETE_VOLUME'] })
    await world.aVolume()
    await anAttachment('left', { finalizers: [FINALIZER] })
    await world.start(only)
    await deleteAttachment()
    await world.until(() => isGone(), 'the attachment to be deleted')
  })
})

it('SYS-18 ignores attachments of other drivers', async () => {
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

it('SYS-18 attaches an inline volume', async () => {
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
  await world.until(async () => (await world.attachment('right'))?.status?.attachError, 'the rejection')
  await deleteAttachment()
  await world.until(() => attached('right'), 'the next attachment')
  expect(world.publishedOn()).toEqual(['id-right'])
})
