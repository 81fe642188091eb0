// Failures between a pod and its volume: drivers that disappear, fail or hang, occupied targets, full disks, pods deleted
// during a mount, and an agent that is killed between any two steps.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Kind } from '../api/kind.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'
import { type AgentFixture, createAgentFixture, DRIVER, NODE, PODS, ROOT } from './agent.fixture.ts'

const staging = (world: AgentFixture) =>
  Object.keys(world.disk.show()).find((path) => path.endsWith('/globalmount')) ?? 'nothing is staged'

/** The message of the pod's waiting container. */
const waiting = async (world: AgentFixture) => (await world.pod('shop')).status.containerStatuses[0].state.waiting

describe('the server', () => {
  it('SYS-7 waits during startup while the server is unavailable', async () => {
    let failures = 0
    const away = async () => {
      failures++
      throw new ApiError(503, 'ServiceUnavailable', 'the server is away')
    }
    /** After lease and node are written, two calls fail. */
    const around = (client: Client): Client => ({
      ...client,
      create: (kind, object, options) =>
        kind === (csiNodeKind as Kind) && failures < 2 ? away() : client.create(kind, object, options),
    })
    const world = await createAgentFixture({ around })
    expect(failures).toBe(2)
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
  })
})

describe('drivers', () => {
  it('SYS-7 repeats NodeStageVolume after the driver disappeared during it', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    world.script([{ method: 'NodeStageVolume', times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(
      /^FailedMount: MountVolume.MountDevice failed for volume "pv-orders" : rpc error: code = Unavailable/,
    )
    expect(await world.phase('shop')).toBe('Pending')
    expect(await waiting(world)).toMatchObject({
      reason: 'ContainerCreating',
      message: expect.stringContaining('code = Unavailable'),
    })
    expect(staging(world)).toContain(DRIVER)
    await world.untilRunning('shop')
    expect(world.calls()).toEqual(['NodeStageVolume', 'NodeStageVolume', 'NodePublishVolume'])
  })

  it('SYS-7 unstages a volume after an uncertain NodeStageVolume when the pod is deleted', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    world.script([{ method: 'NodeStageVolume', effect: { do: 'fail', code: 'DEADLINE_EXCEEDED' } }])
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    await world.untilQuiet()
    world.calls()
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    expect(world.calls()).toEqual(['NodeUnstageVolume'])
  })

  it('SYS-7 undoes nothing after a final error', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    world.script([{ method: 'NodeStageVolume', effect: { do: 'fail', code: 'INVALID_ARGUMENT', message: 'bad' } }])
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    await world.untilQuiet()
    expect(staging(world)).toBe('nothing is staged')
    world.calls()
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    expect(world.calls()).toEqual([])
  })

  it('SYS-7 waits for a driver that is not registered', async () => {
    const world = await createAgentFixture()
    world.sockets.splice(0)
    await world.until(() => world.agent.drivers().registered.length === 0, 'the driver to be unregistered')
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toContain(`driver name ${DRIVER} not found in the list of registered`)
    world.sockets.push({ path: `${ROOT}/plugins_registry/new.sock`, id: '2' })
    await world.untilRunning('shop')
  })

  it('CAP-3 SYS-7 records an event if the driver contradicts a label of the node, until they agree', async () => {
    const settings = { nodes: [{ id: NODE, segments: { 'example.com/zone': 'a' } }] }
    const world = await createAgentFixture({ settings, starts: false })
    await world.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    world.start()
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    const message = /example.com\/zone=b, but driver "fake.stowage.example" reports a. Correct the driver/
    expect((await world.events('shop'))[0]).toMatch(/^FailedMount: MountVolume.SetUp failed for volume "pv-orders"/)
    expect((await world.events('shop'))[0]).toMatch(message)
    expect(await world.phase('shop')).toBe('Pending')
    expect(await waiting(world)).toMatchObject({ message: expect.stringMatching(message) })
    expect(world.calls()).toEqual([])
    const patch = { metadata: { labels: { 'example.com/zone': null } } }
    await world.server.patch(`/api/v1/nodes/${NODE}`, patch, 'merge')
    await world.untilRunning('shop')
  })

  it('SYS-7 stops at once while a driver hangs during registration', async () => {
    const world = await createAgentFixture({ starts: false })
    world.script([{ method: 'NodeGetInfo', effect: { do: 'hang' } }])
    world.start()
    await world.until(() => world.fake.script.hanging === 1, 'the driver to hang')
    await world.stop()
    expect(world.agent.drivers().registered).toEqual([])
  })

  it('SYS-7 keeps a deleted pod with an event while its driver is not registered', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.driverGoes()
    await world.server.delete(`${PODS}/shop`)
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(
      /^FailedUnmount: UnmountVolume.TearDown failed for volume "pv-orders"/,
    )
    expect(world.disk.mounted.size).toBe(2)
    world.driverComes()
    await world.untilGone('shop')
    expect(world.disk.mounted.size).toBe(0)
  })

  it('SYS-7 removes a pod whose volume was deleted in the driver', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.script([
      { method: 'NodeUnpublishVolume', effect: { do: 'fail', code: 'NOT_FOUND' } },
      { method: 'NodeUnstageVolume', effect: { do: 'fail', code: 'NOT_FOUND' } },
    ])
    await world.server.delete(`${PODS}/shop`)
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    world.disk.reboot() // a reboot removes the mounts as well
    await world.untilGone('shop')
  })
})

describe('the node', () => {
  it('SYS-7 records an event for a target occupied by files, and keeps the files', async () => {
    const world = await createAgentFixture()
    await world.stop()
    await world.aVolume('orders')
    const uid = await world.aPod('shop', ['orders'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    world.disk.put(`${target}/precious`, 'file', 'data')
    world.calls()
    world.start()
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(/^FailedMount: .*occupied by files.*Nothing was removed/)
    expect(await world.phase('shop')).toBe('Pending')
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    expect(world.disk.show()[`${target}/precious`]).toBe('data')
    expect(world.calls()).toEqual([])
  })

  it('SYS-7 leaves a foreign mount at the target alone', async () => {
    const world = await createAgentFixture()
    await world.stop()
    await world.aVolume('orders')
    const uid = await world.aPod('shop', ['orders'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    world.disk.mountAt(target)
    world.start()
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toContain('occupied by a mount without a mount record')
    expect(await world.phase('shop')).toBe('Pending')
    expect(world.calls()).toEqual([])
    expect(world.disk.mounted).toContain(target)
  })

  it('SYS-7 records an event for a full disk before the driver is called, and recovers', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    world.disk.beforeWrite = (write) => {
      if (write === 'writeText') throw new Error('ENOSPC: no space left on device')
    }
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(/^FailedMount: .*no space left on device/)
    expect(await world.phase('shop')).toBe('Pending')
    expect(await waiting(world)).toMatchObject({ message: expect.stringContaining('no space left on device') })
    expect(world.calls()).toEqual([])
    delete world.disk.beforeWrite
    await world.untilRunning('shop')
  })

  it('SYS-7 does not publish for a pod deleted during NodeStageVolume, and cleans up', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    world.script([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await world.aPod('shop', ['orders'])
    await world.until(() => world.fake.script.hanging === 1, 'the driver to hang')
    await world.server.delete(`${PODS}/shop`)
    world.fake.script.release()
    await world.untilGone('shop')
    expect(world.calls()).toEqual(['NodeStageVolume', 'NodeUnstageVolume'])
    expect(world.disk.mounted.size).toBe(0)
  })

  it('SYS-7 mounts again after a reboot, and the pod stays Running', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.kill()
    world.disk.reboot()
    for (const volume of Object.values(world.fake.state.volumes)) delete volume.onNodes[NODE]
    world.calls()
    world.start()
    await world.until(() => world.disk.mounted.size === 2, 'both mounts')
    expect(world.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
    expect(await world.phase('shop')).toBe('Running')
  })

  it('SYS-7 cleans up pods deleted while the agent was down', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    const uid = await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.kill()
    await world.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    world.start()
    await world.until(() => !(`${ROOT}/pods/${uid}` in world.disk.show()), 'the directory of the pod to go')
    expect(world.disk.mounted.size).toBe(0)
  })

  it('SYS-7 unstages volumes without publications', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    const uid = await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.kill()
    await world.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    // As if a user had removed the pod's directory.
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders/mount`
    world.disk.unmountAt(target)
    world.disk.take(`${ROOT}/pods/${uid}`)
    for (const volume of Object.values(world.fake.state.volumes)) delete volume.onNodes[NODE]?.published[target]
    world.calls()
    world.start()
    await world.until(() => world.disk.mounted.size === 0, 'the volume to be unstaged')
    expect(world.calls()).toEqual(['NodeUnstageVolume'])
  })

  it('SYS-7 removes an empty record and its directory, unless it is mounted', async () => {
    const world = await createAgentFixture({ starts: false })
    const path = (uid: string) => `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-x`
    for (const uid of ['u-1', 'u-2']) world.disk.put(`${path(uid)}/vol_data.json`, 'file', '')
    world.disk.mountAt(`${path('u-2')}/mount`)
    world.start()
    await world.until(() => !(`${ROOT}/pods/u-1` in world.disk.show()), 'the directory of the pod to go')
    await world.untilQuiet()
    expect(world.disk.mounted).toContain(`${path('u-2')}/mount`)
    expect(`${path('u-2')}/vol_data.json` in world.disk.show()).toBe(true)
  })

  it('SYS-7 leaves an invalid record alone', async () => {
    const world = await createAgentFixture({ starts: false })
    const path = `${ROOT}/pods/u-1/volumes/kubernetes.io~csi/pv-x`
    world.disk.put(`${path}/vol_data.json`, 'file', '{"volumeHan')
    world.disk.mountAt(`${path}/mount`)
    world.start()
    await world.until(() => world.agent.standings().some(({ key }) => key === 'u-1'), 'the agent to give up')
    await world.untilQuiet()
    expect(world.disk.mounted).toContain(`${path}/mount`)
    expect(world.agent.standings()[0]?.because).toContain('not empty')
  })
})

describe('a killed agent', () => {
  const steps = ['NodeStageVolume', 'NodePublishVolume'] as const
  for (const step of steps) {
    for (const when of ['before', 'after'] as const) {
      it(`SYS-7 ${when} ${step} is done: the next run finishes and cleans up`, async () => {
        const world = await createAgentFixture()
        await world.aVolume('orders')
        const effect = when === 'before' ? ({ do: 'hang' } as const) : ({ do: 'loseReply', as: 'hang' } as const)
        world.script([{ method: step, times: 1, effect }])
        await world.aPod('shop', ['orders'])
        await world.until(() => world.fake.script.hanging === 1, 'the driver to hang')
        world.kill()
        world.fake.script.release()
        await new Promise((resolve) => setImmediate(resolve))
        world.start()
        await world.untilRunning('shop')
        await world.server.delete(`${PODS}/shop`)
        await world.untilGone('shop')
        await world.untilQuiet()
        expect(world.disk.mounted.size).toBe(0)
        expect(Object.values(world.fake.state.volumes).every(({ onNodes }) => !onNodes[NODE])).toBe(true)
      })
    }
  }

  it('SYS-7 at any write to the disk: pods end Running or deleted, and nothing stays mounted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 24 }), fc.integer({ min: 1, max: 24 }), async (first, second) => {
        const world = await createAgentFixture()
        await world.aVolume('orders')
        const killAt = (nth: number) => {
          let writes = 0
          world.disk.beforeWrite = () => {
            if (++writes !== nth) return
            world.kill()
            throw new Error('killed')
          }
        }
        const goOn = async () => {
          delete world.disk.beforeWrite
          for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
          world.kill()
          world.start()
        }
        const uid = await world.aPod('shop', ['orders'])
        killAt(first)
        for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
        await goOn()
        await world.untilRunning('shop')
        killAt(second)
        await world.server.delete(`${PODS}/shop`)
        for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
        await goOn()
        await world.untilGone('shop')
        await world.until(() => !(`${ROOT}/pods/${uid}` in world.disk.show()), 'the directory of the pod to go')
        expect(world.disk.mounted.size).toBe(0)
        expect(Object.keys(world.disk.show()).filter((path) => path.endsWith('vol_data.json'))).toEqual([])
        expect(world.fake.record.overlaps).toEqual([])
        await world.stop()
      }),
      { numRuns: 25 },
    )
  })
})
