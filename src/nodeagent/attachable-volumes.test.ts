// Tests that the agent stages an attachable volume only after it is attached, and reports it in volumesInUse.
import { describe, expect, it } from 'vitest'
import { QUARANTINE_TAINT, RELEASED_FENCE } from '../api/kinds/node/fencing.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import type { Client } from '../client/index.ts'
import { attachmentNameOf } from '../volumes/attachment-names.ts'
import { createAgentFixture, DRIVER, NODE, PODS } from './agent.fixture.ts'
import { CONFIRMED_MS_MAX } from './csi/mount-volume.ts'

const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'

describe('an attachable volume', () => {
  type Fixture = Awaited<ReturnType<typeof createAgentFixture>>
  const handleOf = (fixture: Fixture) => Object.keys(fixture.fake.state.volumes)[0]!
  /** Writes the list that the attaching controller writes. On a server without transactions the agent waits for it. */
  const reportAttached = (fixture: Fixture) => {
    const volumesAttached = [{ name: `kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`, devicePath: '' }]
    return fixture.server.patch(`/api/v1/nodes/${NODE}/status`, { status: { volumesAttached } })
  }
  const createAttachment = async (fixture: Fixture, name: string, status: object = { attached: true }) => {
    const source = { persistentVolumeName: 'pv-orders' }
    await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status })
  }

  for (const csiDriver of [{ attachRequired: true }, null]) {
    const condition = csiDriver ? 'with attachRequired' : 'without a CSIDriver'
    it(`SYS-18 SYS-7 is staged with its publish context after it is attached, ${condition}`, async () => {
      const fixture = await createAgentFixture({ csiDriver })
      await fixture.createVolume('orders')
      await fixture.createPod('shop', ['orders'])
      const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
      await fixture.waitUntil(
        async () => JSON.stringify((await fixture.pod('shop')).status).includes(`VolumeAttachment ${name}`),
        'the reason in the pod status',
      )
      expect(fixture.calls()).toEqual([])
      const status = { attached: true, attachmentMetadata: { device: '/dev/x' } }
      await createAttachment(fixture, name, status)
      await reportAttached(fixture)
      await fixture.waitUntilRunning('shop')
      for (const method of ['NodeStageVolume', 'NodePublishVolume']) {
        const call = fixture.fake.record.calls.find((candidate) => candidate.method === method)
        expect(call?.request).toMatchObject({ publishContext: { device: '/dev/x' } })
      }
      const listVolumesInUse = async () =>
        (await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse ?? []
      expect(await listVolumesInUse()).toEqual([`kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`])
      await fixture.server.delete(`${PODS}/shop`)
      await fixture.waitUntilDeleted('shop')
      expect(await listVolumesInUse()).toEqual([])
    })
  }

  it('PLUS-11 delays the return of a fenced node until the volume is unstaged, if the pod was removed while the agent was stopped', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    await createAttachment(fixture, attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE }))
    await reportAttached(fixture)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.stop()
    await fixture.server.call('DELETE', `${PODS}/shop`, JSON.stringify({ gracePeriodSeconds: 0 }))
    const fence = (value: string) =>
      fixture.server.patch(`/api/v1/nodes/${NODE}`, {
        spec: { taints: [{ key: QUARANTINE_TAINT, value, effect: 'NoSchedule' }] },
      })
    const readReleasedFence = async () =>
      (await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.metadata.annotations?.[RELEASED_FENCE]
    await fence('fence-1')
    fixture.setRules([
      { method: 'NodeUnpublishVolume', times: 2, effect: { do: 'fail', code: 'UNAVAILABLE', message: 'busy' } },
    ])
    fixture.start()
    let unstagedCount = 0
    await fixture.waitUntil(async () => {
      const isReleased = (await readReleasedFence()) === 'fence-1'
      unstagedCount += fixture.calls().filter((call) => call.includes('NodeUnstageVolume')).length
      if (isReleased) expect(unstagedCount).toBeGreaterThan(0)
      return isReleased
    }, 'the release of the fence')
    // A later fence is released again, with nothing to unmount.
    await fence('fence-2')
    await fixture.waitUntil(async () => (await readReleasedFence()) === 'fence-2', 'the release of the second fence')
  })

  it('SYS-18 is reported as in use before it is staged', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await createAttachment(fixture, name)
    await reportAttached(fixture)
    fixture.setRules([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver to hang')
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
    fixture.fake.script.release()
    await fixture.waitUntilRunning('shop')
  })

  it('PLUS-11 is not published if it is detached while the machine is suspended during NodeStageVolume', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await createAttachment(fixture, name)
    await reportAttached(fixture)
    fixture.setRules([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver to hang')
    await fixture.server.delete(`${ATTACHMENTS}/${name}`)
    await fixture.server.clock.advance(CONFIRMED_MS_MAX)
    fixture.fake.script.release()
    await fixture.waitUntil(
      async () => JSON.stringify((await fixture.pod('shop')).status).includes(`VolumeAttachment ${name}`),
      'the reason in the pod status',
    )
    expect(fixture.calls()).toEqual(['NodeStageVolume'])
  })

  it('SYS-18 is not staged if it is detached just before the report', async () => {
    let detach: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && (patch.body.status?.volumesInUse ?? []).length > 0
        if (isReport) await detach?.()
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const attach = async () => {
      await createAttachment(fixture, name)
      await reportAttached(fixture)
    }
    detach = async () => {
      detach = undefined
      await fixture.server.delete(`${ATTACHMENTS}/${name}`)
    }
    await attach()
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => detach === undefined, 'the volume to be detached')
    await fixture.waitUntilIdle()
    expect(fixture.calls()).toEqual([])
    expect(await fixture.phase('shop')).toBe('Pending')
    await attach()
    await fixture.waitUntilRunning('shop')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
  })

  it('SYS-18 is staged only if it is in volumesAttached on a server without atomic commits', async () => {
    const wrapClient = (client: Client): Client => ({ ...client, commitsAtomically: async () => false })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await createAttachment(fixture, name)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(
      async () => JSON.stringify((await fixture.pod('shop')).status).includes('attached volumes of node'),
      'the reason in the pod status',
    )
    expect(fixture.calls()).toEqual([])
    await reportAttached(fixture)
    await fixture.waitUntilRunning('shop')
  })

  it('SYS-18 is in volumesInUse of the first status that the agent writes after a restart', async () => {
    const reports: string[][] = []
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        if (kind === nodeKind && patch.body.status) reports.push(patch.body.status.volumesInUse ?? [])
        return client.patch(kind, ref, patch, options) as any
      },
      async create(kind: any, object: any, options: any) {
        if (kind === nodeKind) reports.push(object.status.volumesInUse ?? [])
        return client.create(kind, object, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await createAttachment(fixture, name)
    await reportAttached(fixture)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')

    const expectedNames = [`kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`]
    for (const isNodeDeleted of [false, true]) {
      fixture.kill()
      if (isNodeDeleted) await fixture.server.delete(`/api/v1/nodes/${NODE}`)
      reports.length = 0
      fixture.start()
      await fixture.waitUntil(() => reports.length > (isNodeDeleted ? 1 : 0), 'the node to report')
      await fixture.waitUntilIdle()
      expect(reports).toEqual(reports.map(() => expectedNames))
    }
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toBeUndefined()
  })

  it('SYS-18 stays in volumesInUse if an earlier report is delayed', async () => {
    let delayedReport: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && patch.body.status && !delayedReport
        if (isReport) delayedReport = () => client.patch(kind, ref, patch, options) as any
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await createAttachment(fixture, name)
    await reportAttached(fixture)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await expect(delayedReport?.()).rejects.toMatchObject({ code: 409 })
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
  })

  it('SYS-18 has its attach error reported in an event on the pod', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const attachError = { message: 'the storage array is unavailable', time: '2026-01-01T00:00:00Z' }
    await createAttachment(fixture, name, { attached: false, attachError })
    await reportAttached(fixture)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toBe(
      'FailedAttachVolume: AttachVolume.Attach failed for volume "pv-orders" : the storage array is unavailable',
    )
  })
})
