// Tests the agent when the server, the driver, the node or the agent itself fails.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Kind } from '../api/kind.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'
import { type AgentFixture, createAgentFixture, DRIVER, NODE, PODS, ROOT } from './agent.fixture.ts'

const findStagingPath = (fixture: AgentFixture) =>
  Object.keys(fixture.disk.snapshot()).find((path) => path.endsWith('/globalmount')) ?? 'nothing is staged'

/** Returns the waiting state of the pod's container. */
const readWaitingState = async (fixture: AgentFixture) =>
  (await fixture.pod('shop')).status.containerStatuses[0].state.waiting

describe('an agent with an unavailable server', () => {
  it('SYS-7 retries during startup', async () => {
    let failures = 0
    const failUnavailable = async () => {
      failures++
      throw new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
    }
    /** Fails the first two attempts to create the CSINode. */
    const wrapClient = (client: Client): Client => ({
      ...client,
      create: (kind, object, options) =>
        kind === (csiNodeKind as Kind) && failures < 2 ? failUnavailable() : client.create(kind, object, options),
    })
    const fixture = await createAgentFixture({ wrapClient })
    expect(failures).toBe(2)
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
  })
})

describe('an agent with a failing driver', () => {
  it('SYS-7 repeats NodeStageVolume if the driver stops during the call', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    fixture.setRules([{ method: 'NodeStageVolume', times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(
      /^FailedMount: MountVolume.MountDevice failed for volume "pv-orders" : rpc error: code = Unavailable/,
    )
    expect(await fixture.phase('shop')).toBe('Pending')
    expect(await readWaitingState(fixture)).toMatchObject({
      reason: 'ContainerCreating',
      message: expect.stringContaining('code = Unavailable'),
    })
    expect(findStagingPath(fixture)).toContain(DRIVER)
    await fixture.waitUntilRunning('shop')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodeStageVolume', 'NodePublishVolume'])
  })

  it("SYS-7 unstages a deleted pod's volume after NodeStageVolume failed with an uncertain error", async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    fixture.setRules([{ method: 'NodeStageVolume', effect: { do: 'fail', code: 'DEADLINE_EXCEEDED' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    await fixture.waitUntilIdle()
    fixture.calls()
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    expect(fixture.calls()).toEqual(['NodeUnstageVolume'])
  })

  it("SYS-7 does not unstage a deleted pod's volume after NodeStageVolume failed with a final error", async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    fixture.setRules([{ method: 'NodeStageVolume', effect: { do: 'fail', code: 'INVALID_ARGUMENT', message: 'bad' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    await fixture.waitUntilIdle()
    expect(findStagingPath(fixture)).toBe('nothing is staged')
    fixture.calls()
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    expect(fixture.calls()).toEqual([])
  })

  it('SYS-7 waits for a driver that is not registered', async () => {
    const fixture = await createAgentFixture()
    fixture.sockets.splice(0)
    await fixture.waitUntil(() => fixture.agent.drivers().registered.length === 0, 'the driver to be unregistered')
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain(`driver name ${DRIVER} not found in the list of registered`)
    fixture.sockets.push({ path: `${ROOT}/plugins_registry/new.sock`, id: '2' })
    await fixture.waitUntilRunning('shop')
  })

  it("CAP-3 SYS-7 records an event until the topology of the driver matches the node's labels", async () => {
    const settings = { nodes: [{ id: NODE, segments: { 'example.com/zone': 'a' } }] }
    const fixture = await createAgentFixture({ settings, autoStart: false })
    await fixture.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    const message = /example.com\/zone=b, but driver "fake.stowage.example" reports a. Correct the driver/
    expect((await fixture.events('shop'))[0]).toMatch(/^FailedMount: MountVolume.SetUp failed for volume "pv-orders"/)
    expect((await fixture.events('shop'))[0]).toMatch(message)
    expect(await fixture.phase('shop')).toBe('Pending')
    expect(await readWaitingState(fixture)).toMatchObject({ message: expect.stringMatching(message) })
    expect(fixture.calls()).toEqual([])
    const patch = { metadata: { labels: { 'example.com/zone': null } } }
    await fixture.server.patch(`/api/v1/nodes/${NODE}`, patch, 'merge')
    await fixture.waitUntilRunning('shop')
  })

  it('SYS-7 stops immediately while a driver hangs during registration', async () => {
    const fixture = await createAgentFixture({ autoStart: false })
    fixture.setRules([{ method: 'NodeGetInfo', effect: { do: 'hang' } }])
    fixture.start()
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver to hang')
    await fixture.stop()
    expect(fixture.agent.drivers().registered).toEqual([])
  })

  it('SYS-7 does not remove a deleted pod while its driver is unavailable, and records an event', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.stopDriver()
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(
      /^FailedUnmount: UnmountVolume.TearDown failed for volume "pv-orders"/,
    )
    expect(fixture.disk.mountPoints.size).toBe(2)
    fixture.startDriver()
    await fixture.waitUntilDeleted('shop')
    expect(fixture.disk.mountPoints.size).toBe(0)
  })

  it('SYS-7 removes a pod whose volume was deleted in the driver, after its mounts are gone', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.setRules([
      { method: 'NodeUnpublishVolume', effect: { do: 'fail', code: 'NOT_FOUND' } },
      { method: 'NodeUnstageVolume', effect: { do: 'fail', code: 'NOT_FOUND' } },
    ])
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    fixture.disk.reboot() // a reboot also removes the mounts
    await fixture.waitUntilDeleted('shop')
  })
})

describe('an agent on a failing node', () => {
  it('SYS-7 records an event for a target that contains files, and does not remove them', async () => {
    const fixture = await createAgentFixture()
    await fixture.stop()
    await fixture.createVolume('orders')
    const uid = await fixture.createPod('shop', ['orders'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    fixture.disk.put(`${target}/precious`, 'file', 'data')
    fixture.calls()
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(/^FailedMount: .*occupied by files.*Nothing was removed/)
    expect(await fixture.phase('shop')).toBe('Pending')
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    expect(fixture.disk.snapshot()[`${target}/precious`]).toBe('data')
    expect(fixture.calls()).toEqual([])
  })

  it('SYS-7 does not unmount a target that is mounted without a record', async () => {
    const fixture = await createAgentFixture()
    await fixture.stop()
    await fixture.createVolume('orders')
    const uid = await fixture.createPod('shop', ['orders'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    fixture.disk.mountAt(target)
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain('occupied by a mount without a mount record')
    expect(await fixture.phase('shop')).toBe('Pending')
    expect(fixture.calls()).toEqual([])
    expect(fixture.disk.mountPoints).toContain(target)
  })

  it('SYS-7 records an event and does not call the driver while the disk is full, then recovers', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    fixture.disk.beforeWrite = (operation) => {
      if (operation === 'writeText') throw new Error('ENOSPC: no space left on device')
    }
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(/^FailedMount: .*no space left on device/)
    expect(await fixture.phase('shop')).toBe('Pending')
    expect(await readWaitingState(fixture)).toMatchObject({
      message: expect.stringContaining('no space left on device'),
    })
    expect(fixture.calls()).toEqual([])
    delete fixture.disk.beforeWrite
    await fixture.waitUntilRunning('shop')
  })

  it('SYS-7 unstages the volume of a pod that is deleted during NodeStageVolume', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    fixture.setRules([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver to hang')
    await fixture.server.delete(`${PODS}/shop`)
    fixture.fake.script.release()
    await fixture.waitUntilDeleted('shop')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodeUnstageVolume'])
    expect(fixture.disk.mountPoints.size).toBe(0)
  })

  it('SYS-7 mounts the volumes again after a reboot, and the pod stays Running', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.kill()
    fixture.disk.reboot()
    for (const volume of Object.values(fixture.fake.state.volumes)) delete volume.onNodes[NODE]
    fixture.calls()
    fixture.start()
    await fixture.waitUntil(() => fixture.disk.mountPoints.size === 2, 'both mounts')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
    expect(await fixture.phase('shop')).toBe('Running')
  })

  it('SYS-7 cleans up after pods that were deleted while the agent was down', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    const uid = await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.kill()
    await fixture.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    fixture.start()
    await fixture.waitUntil(
      () => !(`${ROOT}/pods/${uid}` in fixture.disk.snapshot()),
      'the directory of the pod to be removed',
    )
    expect(fixture.disk.mountPoints.size).toBe(0)
  })

  it('SYS-7 unstages volumes without publications', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    const uid = await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.kill()
    await fixture.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    // Simulate a user who removes the pod's directory.
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    fixture.disk.unmountAt(target)
    fixture.disk.delete(`${ROOT}/pods/${uid}`)
    for (const volume of Object.values(fixture.fake.state.volumes)) delete volume.onNodes[NODE]?.published[target]
    fixture.calls()
    fixture.start()
    await fixture.waitUntil(() => fixture.disk.mountPoints.size === 0, 'the volume to be unstaged')
    expect(fixture.calls()).toEqual(['NodeUnstageVolume'])
  })

  it('SYS-7 removes an empty record and its directory, unless it is mounted', async () => {
    const fixture = await createAgentFixture({ autoStart: false })
    const path = (uid: string) => `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-x`
    for (const uid of ['u-1', 'u-2']) fixture.disk.put(`${path(uid)}/vol_data.json`, 'file', '')
    fixture.disk.mountAt(`${path('u-2')}/mount`)
    fixture.start()
    await fixture.waitUntil(
      () => !(`${ROOT}/pods/u-1` in fixture.disk.snapshot()),
      'the directory of the pod to be removed',
    )
    await fixture.waitUntilIdle()
    expect(fixture.disk.mountPoints).toContain(`${path('u-2')}/mount`)
    expect(`${path('u-2')}/vol_data.json` in fixture.disk.snapshot()).toBe(true)
  })

  it('SYS-7 does not change a volume with an invalid record', async () => {
    const fixture = await createAgentFixture({ autoStart: false })
    const path = `${ROOT}/pods/u-1/volumes/kubernetes.io~csi/pv-x`
    fixture.disk.put(`${path}/vol_data.json`, 'file', '{"volumeHan')
    fixture.disk.mountAt(`${path}/mount`)
    fixture.start()
    await fixture.waitUntil(() => fixture.agent.queueStates().some(({ key }) => key === 'u-1'), 'the failure')
    await fixture.waitUntilIdle()
    expect(fixture.disk.mountPoints).toContain(`${path}/mount`)
    expect(fixture.agent.queueStates()[0]?.message).toContain('not empty')
  })
})

describe('a killed agent', () => {
  const steps = ['NodeStageVolume', 'NodePublishVolume'] as const
  for (const step of steps) {
    for (const moment of ['before', 'after'] as const) {
      it(`SYS-7 recovers after a kill ${moment} ${step} takes effect`, async () => {
        const fixture = await createAgentFixture()
        await fixture.createVolume('orders')
        const effect = moment === 'before' ? ({ do: 'hang' } as const) : ({ do: 'loseReply', as: 'hang' } as const)
        fixture.setRules([{ method: step, times: 1, effect }])
        await fixture.createPod('shop', ['orders'])
        await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver to hang')
        fixture.kill()
        fixture.fake.script.release()
        await new Promise((resolve) => setImmediate(resolve))
        fixture.start()
        await fixture.waitUntilRunning('shop')
        await fixture.server.delete(`${PODS}/shop`)
        await fixture.waitUntilDeleted('shop')
        await fixture.waitUntilIdle()
        expect(fixture.disk.mountPoints.size).toBe(0)
        expect(Object.values(fixture.fake.state.volumes).every(({ onNodes }) => !onNodes[NODE])).toBe(true)
      })
    }
  }

  it('SYS-7 recovers after a kill at any write: the pod runs, and no mount remains after it is deleted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 24 }),
        async (firstKill, secondKill) => {
          const fixture = await createAgentFixture()
          await fixture.createVolume('orders')
          const killAtWrite = (writeNumber: number) => {
            let writes = 0
            fixture.disk.beforeWrite = () => {
              if (++writes !== writeNumber) return
              fixture.kill()
              throw new Error('killed')
            }
          }
          const restart = async () => {
            delete fixture.disk.beforeWrite
            for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve))
            fixture.kill()
            fixture.start()
          }
          const uid = await fixture.createPod('shop', ['orders'])
          killAtWrite(firstKill)
          for (let round = 0; round < 100; round++) await new Promise((resolve) => setImmediate(resolve))
          await restart()
          await fixture.waitUntilRunning('shop')
          killAtWrite(secondKill)
          await fixture.server.delete(`${PODS}/shop`)
          for (let round = 0; round < 100; round++) await new Promise((resolve) => setImmediate(resolve))
          await restart()
          await fixture.waitUntilDeleted('shop')
          await fixture.waitUntil(
            () => !(`${ROOT}/pods/${uid}` in fixture.disk.snapshot()),
            'the directory of the pod to be removed',
          )
          expect(fixture.disk.mountPoints.size).toBe(0)
          expect(Object.keys(fixture.disk.snapshot()).filter((path) => path.endsWith('vol_data.json'))).toEqual([])
          expect(fixture.fake.record.overlaps).toEqual([])
          await fixture.stop()
        },
      ),
      { numRuns: 25 },
    )
  })
})
