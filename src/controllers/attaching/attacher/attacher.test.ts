// Runs the attacher without the attach-detach controllers: the tests create and delete the attachments.
import { afterEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { secretKind } from '../../../api/kinds/secret/secret.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { NODE_ID_ANNOTATION } from '../../../volumes/attachment-names.ts'
import {
  type AttachingFixture,
  attachmentNameOn,
  createAttachingFixture,
  DRIVER,
  FINALIZER,
} from '../attaching.fixture.ts'

let fixture: AttachingFixture
afterEach(async () => {
  await fixture.checkFinalizers()
  expect(fixture.violations).toEqual([])
  await fixture.close()
})

const createAttachment = (nodeName = 'left', metadata: object = {}) =>
  fixture.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentNameOn(nodeName), ...metadata },
    spec: { attacher: DRIVER, nodeName, source: { persistentVolumeName: 'data' } },
  } as never)
const deleteAttachment = (nodeName = 'left') =>
  fixture.client.delete(volumeAttachmentKind, { name: attachmentNameOn(nodeName) })
const isAttached = async (nodeName = 'left') => (await fixture.attachment(nodeName))?.status?.attached === true
const isDeleted = async (nodeName = 'left') => (await fixture.attachment(nodeName)) === undefined
const publishCalls = () => fixture.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')
const ATTACHER_ONLY = { component: 'attacher' } as const

describe('publishing', () => {
  it('SYS-18 saves the finalizers and the node ID before it calls the driver', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    fixture.fake.script.setRules([{ method: 'ControllerPublishVolume', effect: { do: 'hang' } }])
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the publish call')
    expect((await fixture.attachment('left'))?.metadata).toMatchObject({
      finalizers: [FINALIZER],
      annotations: { [NODE_ID_ANNOTATION]: 'id-left' },
    })
    expect((await fixture.volume())?.metadata.finalizers).toContain(FINALIZER)
    expect(await isAttached()).toBe(false)
    fixture.fake.script.setRules([])
    fixture.fake.script.release()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
  })

  it("SYS-18 sends the volume's attributes once its Secret exists, and strips the secrets from errors", async () => {
    fixture = await createAttachingFixture({ secretKeys: ['password'] })
    const csi = {
      readOnly: true,
      volumeAttributes: { tier: 'gold' },
      controllerPublishSecretRef: { namespace: 'default', name: 'login' },
    }
    await fixture.createVolume('data', { csi })
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    const attachError = async () => (await fixture.attachment('left'))?.status?.attachError
    await fixture.waitUntil(async () => (await attachError()) !== undefined, 'the attach error')
    expect(await attachError()).toMatchObject({ message: expect.stringContaining('secret login in namespace default') })
    expect(publishCalls()).toEqual([])

    const password = Buffer.from('hunter-two').toString('base64')
    await fixture.client.create(secretKind, {
      metadata: { namespace: 'default', name: 'login' },
      data: { password },
    } as never)
    fixture.fake.script.setRules([
      {
        method: 'ControllerPublishVolume',
        nth: 1,
        effect: { do: 'fail', code: 'UNAUTHENTICATED', message: 'not hunter-two' },
      },
    ])
    await fixture.waitUntil(async () => (await attachError())?.errorCode === 16, 'the attach error')
    expect((await attachError())?.message).toBe('rpc error: code = Unauthenticated desc = not ***')
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    expect(publishCalls().at(-1)?.request).toMatchObject({ readonly: true, volumeContext: { tier: 'gold' } })
    expect(JSON.stringify(await fixture.attachments())).not.toContain('hunter')
  })

  it('PLUS-11 attaches volumes to other nodes while detaches from a lost node hang', async () => {
    fixture = await createAttachingFixture()
    const deadVolumes = Array.from({ length: 30 }, (_, index) => `dead-${index}`)
    const deadAttachment = (volume: string) => attachmentNameOn('left', `vol-${volume}`)
    for (const name of deadVolumes) {
      await fixture.createVolume(name)
      await fixture.client.create(volumeAttachmentKind, {
        metadata: { name: deadAttachment(name) },
        spec: { attacher: DRIVER, nodeName: 'left', source: { persistentVolumeName: name } },
      } as never)
    }
    await fixture.createVolume('data')
    await fixture.start({ ...ATTACHER_ONLY, attacher: { workers: 10 } })
    const attachedCount = async () => (await fixture.attachments()).filter(({ status }) => status?.attached).length
    await fixture.waitUntil(async () => (await attachedCount()) === deadVolumes.length, 'all volumes to be attached')
    fixture.fake.script.setRules([{ method: 'ControllerUnpublishVolume', effect: { do: 'hang' } }])
    for (const name of deadVolumes) await fixture.client.delete(volumeAttachmentKind, { name: deadAttachment(name) })
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 5, 'half of the workers to call the driver')
    await createAttachment('right')
    await fixture.waitUntil(() => isAttached('right'), 'the volume to be attached')
    expect(fixture.fake.script.hangingCount).toBe(5)
    fixture.fake.script.setRules([])
    fixture.fake.script.release()
    await fixture.waitUntil(async () => (await fixture.attachments()).length === 1, 'all other volumes to be detached')
  })

  it('SYS-18 waits until the CSINode has the driver', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.client.delete(csiNodeKind, { name: 'left' })
    const instance = await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(async () => (await fixture.attachment('left'))?.status?.attachError, 'the attach error')
    await fixture.settle()
    expect(instance.queueState(attachmentNameOn('left'))).toMatchObject({
      is: 'stuck',
      message: 'CSINode left does not contain driver disks.example.com',
      details: { waitsFor: { kind: 'CSINode', name: 'left' } },
    })
    expect((await fixture.attachment('left'))?.metadata.finalizers).toBeUndefined()
    const drivers = [{ name: DRIVER, nodeID: 'id-left', topologyKeys: [] }]
    await fixture.client.create(csiNodeKind, { metadata: { name: 'left' }, spec: { drivers } } as never)
    await fixture.settle()
    expect(await isAttached()).toBe(true)
  })

  it('SYS-18 rejects a volume that is being deleted', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.client.delete(persistentVolumeKind, { name: 'data' })
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(async () => (await fixture.attachment('left'))?.status?.attachError, 'the attach error')
    expect((await fixture.attachment('left'))?.status?.attachError?.message).toBe(
      'PersistentVolume "data" is marked for deletion',
    )
    expect(publishCalls()).toEqual([])
  })

  it('SYS-18 retries with backoff, and unpublishes a deleted attachment after an uncertain error', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    fixture.fake.script.setRules([
      { method: 'ControllerPublishVolume', effect: { do: 'fail', code: 'DEADLINE_EXCEEDED', message: 'slow' } },
    ])
    const instance = await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => instance.queueState(attachmentNameOn('left'))?.failures === 4, 'four attempts')
    expect(instance.queueState(attachmentNameOn('left'))?.message).toContain('(the driver may still be working on it)')
    await deleteAttachment()
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
    expect(fixture.fake.record.calls.at(-1)?.method).toBe('ControllerUnpublishVolume')
  })

  it('SYS-18 unpublishes from the old node ID when a node was recreated', async () => {
    fixture = await createAttachingFixture({ nodes: [{ id: 'id-left' }, { id: 'id-new' }] })
    await fixture.createVolume()
    fixture.fake.script.setRules([
      { method: 'ControllerPublishVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerPublishVolume', nth: 2, effect: { do: 'fail', code: 'INTERNAL' } },
    ])
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => publishCalls().length === 2, 'two attempts')
    await fixture.client.delete(csiNodeKind, { name: 'left' })
    const drivers = [{ name: DRIVER, nodeID: 'id-new', topologyKeys: [] }]
    await fixture.client.create(csiNodeKind, { metadata: { name: 'left' }, spec: { drivers } } as never)
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    expect(fixture.publishedNodeIds()).toEqual(['id-new'])
    await deleteAttachment()
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
  })
})

describe('unpublishing', () => {
  it('SYS-18 uses the saved node ID when the node was deleted', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await fixture.client.delete(csiNodeKind, { name: 'left' })
    await deleteAttachment()
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
  })

  it('SYS-18 succeeds, even though the secret with its credentials was deleted', async () => {
    fixture = await createAttachingFixture()
    const secretRef = { namespace: 'default', name: 'login' }
    await fixture.createVolume('data', { csi: { controllerPublishSecretRef: secretRef } })
    await fixture.client.create(secretKind, { metadata: secretRef, data: { password: 'c2VjcmV0' } } as never)
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await fixture.client.delete(secretKind, secretRef)
    await deleteAttachment()
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
  })

  it('SYS-18 saves the error and keeps the attachment until it succeeds', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    fixture.fake.script.setRules([
      {
        method: 'ControllerUnpublishVolume',
        times: 3,
        effect: { do: 'fail', code: 'INTERNAL', message: 'device is busy' },
      },
    ])
    await deleteAttachment()
    await fixture.waitUntil(async () => (await fixture.attachment('left'))?.status?.detachError, 'the detach error')
    expect((await fixture.attachment('left'))?.status).toMatchObject({
      attached: true,
      detachError: { message: 'rpc error: code = Internal desc = device is busy' },
    })
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
  })

  it('SYS-18 makes no call for an attachment that was never published', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await createAttachment('left', { finalizers: ['example.com/other'] })
    await deleteAttachment()
    await fixture.start(ATTACHER_ONLY)
    await fixture.settle()
    expect(fixture.fake.record.calls.filter(({ volume }) => volume === 'data')).toEqual([])
  })

  it('SYS-18 marks the attachment as detached if another finalizer keeps it', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start(ATTACHER_ONLY)
    await createAttachment('left', { finalizers: ['example.com/other'] })
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await deleteAttachment()
    await fixture.waitUntil(
      async () => (await fixture.attachment('left'))?.status?.attached === false,
      'the volume to be detached',
    )
    expect((await fixture.attachment('left'))?.metadata.finalizers).toEqual(['example.com/other'])
    expect((await fixture.attachment('left'))?.status).toEqual({ attached: false })
    expect(fixture.publishedNodeIds()).toEqual([])
  })

  it('SYS-18 keeps the finalizer on the volume until its last attachment is deleted', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await fixture.client.delete(persistentVolumeKind, { name: 'data' })
    const body = { metadata: { '$deleteFromPrimitiveList/finalizers': ['kubernetes.io/pv-protection'] } }
    await fixture.client.patch(persistentVolumeKind, { name: 'data' }, { type: 'strategic', body })
    await fixture.settle()
    expect((await fixture.volume())?.metadata.finalizers).toEqual([FINALIZER])
    await deleteAttachment()
    await fixture.waitUntil(async () => (await fixture.volume()) === undefined, 'the volume to be deleted')
    expect(fixture.publishedNodeIds()).toEqual([])
  })
})

describe('for a driver without PUBLISH_UNPUBLISH_VOLUME', () => {
  it('SYS-18 marks attachments as attached without calling the driver', async () => {
    fixture = await createAttachingFixture({ controller: ['CREATE_DELETE_VOLUME'] })
    await fixture.createVolume()
    await fixture.start(ATTACHER_ONLY)
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    expect((await fixture.attachment('left'))?.metadata.finalizers).toBeUndefined()
    await deleteAttachment()
    expect(await isDeleted()).toBe(true)
    expect(publishCalls()).toEqual([])
  })

  it('SYS-18 removes a finalizer left by an earlier driver version when an attachment is deleted', async () => {
    fixture = await createAttachingFixture({ controller: ['CREATE_DELETE_VOLUME'] })
    await fixture.createVolume()
    await createAttachment('left', { finalizers: [FINALIZER] })
    await fixture.start(ATTACHER_ONLY)
    await deleteAttachment()
    await fixture.waitUntil(() => isDeleted(), 'the attachment to be deleted')
  })
})

it('SYS-18 ignores attachments of other drivers', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume()
  await fixture.start(ATTACHER_ONLY)
  await fixture.client.create(volumeAttachmentKind, {
    metadata: { name: 'foreign' },
    spec: { attacher: 'other.example.com', nodeName: 'left', source: { persistentVolumeName: 'data' } },
  } as never)
  await fixture.settle()
  const [attachment] = await fixture.attachments()
  expect(attachment?.status).toEqual({ attached: false })
  expect(attachment?.metadata.finalizers).toBeUndefined()
})

it('SYS-18 attaches an inline volume, which blocks a PersistentVolume with the same volumeHandle until it is detached', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume()
  await fixture.start(ATTACHER_ONLY)
  const inlineVolumeSpec = {
    accessModes: ['ReadWriteOnce'],
    csi: { driver: DRIVER, volumeHandle: 'vol-data' },
  }
  await fixture.client.create(volumeAttachmentKind, {
    metadata: { name: attachmentNameOn('left') },
    spec: { attacher: DRIVER, nodeName: 'left', source: { inlineVolumeSpec } },
  } as never)
  await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
  expect(fixture.publishedNodeIds()).toEqual(['id-left'])
  await createAttachment('right') // of the PersistentVolume with the same volumeHandle
  await fixture.waitUntil(async () => (await fixture.attachment('right'))?.status?.attachError, 'the attach error')
  await deleteAttachment()
  await fixture.waitUntil(() => isAttached('right'), 'the volume to be attached to the next node')
  expect(fixture.publishedNodeIds()).toEqual(['id-right'])
})

describe('comparing attachments with the driver', () => {
  const listCalls = () => fixture.fake.record.calls.filter(({ method }) => method === 'ListVolumes')
  const detachBehindAttacher = (nodeId: string) => delete fixture.fake.state.volumes['vol-data']!.attachments[nodeId]

  it('SYS-18 publishes a volume again if the driver does not list it as published on the node', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume('other')
    await fixture.createVolume()
    const attacher = { syncIntervalMs: 60_000, listEntriesMax: 1 }
    await fixture.start({ ...ATTACHER_ONLY, attacher })
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await fixture.waitUntil(() => listCalls().length === 2, 'two pages')
    await fixture.settle()
    expect(publishCalls()).toHaveLength(1)

    detachBehindAttacher('id-left')
    await fixture.waitUntil(() => publishCalls().length === 2, 'the second publish call')
    await fixture.settle()
    expect(fixture.publishedNodeIds()).toEqual(['id-left'])
  })

  it('SYS-18 retries at the next interval after the driver has failed to list its volumes', async () => {
    fixture = await createAttachingFixture()
    await fixture.createVolume()
    fixture.fake.script.setRules([{ method: 'ListVolumes', nth: 1, effect: { do: 'fail', code: 'INTERNAL' } }])
    await fixture.start({ ...ATTACHER_ONLY, attacher: { syncIntervalMs: 60_000 } })
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    detachBehindAttacher('id-left')
    await fixture.waitUntil(() => fixture.publishedNodeIds().length === 1, 'the volume to be published again')
    expect(listCalls()).toHaveLength(2)
  })

  it('SYS-18 does not list volumes without the capability LIST_VOLUMES_PUBLISHED_NODES', async () => {
    fixture = await createAttachingFixture({ controller: ['PUBLISH_UNPUBLISH_VOLUME', 'LIST_VOLUMES'] })
    await fixture.createVolume()
    await fixture.start({ ...ATTACHER_ONLY, attacher: { syncIntervalMs: 1_000 } })
    await createAttachment()
    await fixture.waitUntil(() => isAttached(), 'the volume to be attached')
    await fixture.server.clock.advance(10_000)
    await fixture.settle()
    expect(listCalls()).toEqual([])
  })
})

it('SYS-18 publishes only attachments to its own node if nodeName is set', async () => {
  fixture = await createAttachingFixture()
  await fixture.createVolume('data', { accessModes: ['ReadWriteMany'] })
  await fixture.start({ ...ATTACHER_ONLY, attacher: { nodeName: 'right' } })
  await createAttachment('left')
  await createAttachment('right')
  await fixture.waitUntil(() => isAttached('right'), 'the volume to be attached')
  await fixture.settle()
  expect(fixture.publishedNodeIds()).toEqual(['id-right'])
})
