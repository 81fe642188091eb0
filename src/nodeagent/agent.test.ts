import { describe, expect, it } from 'vitest'
import { createAgentFixture, DRIVER, NODE, PODS, ROOT } from './agent.fixture.ts'

describe('mounting volumes of a pod', () => {
  it('SYS-7 stages and publishes in order, then runs the pod', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    const uid = await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    expect(world.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders`
    expect(world.disk.mounted).toContain(`${target}/mount`)
    expect(JSON.parse(world.disk.show()[`${target}/vol_data.json`]!)).toMatchObject({
      specVolID: 'pv-orders',
      driverName: DRIVER,
      nodeName: NODE,
      volumeLifecycleMode: 'Persistent',
    })
    const { status } = await world.pod('shop')
    expect(status.containerStatuses[0]).toMatchObject({ ready: true, started: true, restartCount: 0 })
    const conditions = Object.fromEntries(
      status.conditions.map(({ type, status: is }: { type: string; status: string }) => [type, is]),
    )
    expect(conditions).toMatchObject({ Ready: 'True', ContainersReady: 'True', Initialized: 'True' })
  })

  it('SYS-7 unpublishes and unstages before it removes a deleted pod, and cleans up the disk', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    const before = world.disk.show()
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.calls()
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    await world.untilQuiet()
    expect(world.calls()).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume'])
    expect(world.disk.mounted.size).toBe(0)
    expect(leftovers(before, world.disk.show())).toEqual([])
  })

  it('SYS-7 stages once for two pods on one claim, and unstages with the last', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('one', ['orders'])
    await world.aPod('two', ['orders'])
    await world.untilRunning('one')
    await world.untilRunning('two')
    expect(world.calls().sort()).toEqual(['NodePublishVolume', 'NodePublishVolume', 'NodeStageVolume'])
    await world.server.delete(`${PODS}/one`)
    await world.untilGone('one')
    expect(world.calls()).toEqual(['NodeUnpublishVolume'])
    await world.server.delete(`${PODS}/two`)
    await world.untilGone('two')
    expect(world.calls()).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume'])
    expect(world.fake.record.overlaps).toEqual([])
  })

  it('SYS-7 cleans up after a pod deleted without grace period', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    const before = world.disk.show()
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    await world.until(() => world.disk.mounted.size === 0, 'everything to be unmounted')
    await world.untilQuiet()
    expect(leftovers(before, world.disk.show())).toEqual([])
  })

  it('SYS-7 publishes block volumes as devices, with a link in the pod’s directory', async () => {
    const world = await createAgentFixture()
    await world.aVolume('raw', { pv: { volumeMode: 'Block' }, claim: { volumeMode: 'Block' } })
    const before = world.disk.show()
    const uid = await world.aPod('db', ['raw'], {
      container: { volumeMounts: [], volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] },
    })
    await world.untilRunning('db')
    const target = `${ROOT}/plugins/kubernetes.io/csi/volumeDevices/publish/pv-raw/${uid}`
    expect(world.disk.show()[`${ROOT}/pods/${uid}/volumeDevices/kubernetes.io~csi/pv-raw`]).toBe(`-> ${target}`)
    const stage = world.fake.record.calls.find(({ method }) => method === 'NodeStageVolume')
    expect(stage?.request).toMatchObject({ volumeCapability: { block: {} } })
    await world.server.delete(`${PODS}/db`)
    await world.untilGone('db')
    await world.untilQuiet()
    expect(leftovers(before, world.disk.show())).toEqual([])
  })

  it('SYS-7 sends access mode, file system, mount options, readonly and pod info to the driver', async () => {
    const world = await createAgentFixture({ csiDriver: { attachRequired: false, podInfoOnMount: true } })
    await world.aVolume('orders', {
      pv: { mountOptions: ['noatime'] },
      csi: { fsType: 'xfs', volumeAttributes: { color: 'red' } },
    })
    const uid = await world.aPod('shop', ['orders'], { readOnly: true })
    await world.untilRunning('shop')
    const request = (method: string) => world.fake.record.calls.find((call) => call.method === method)?.request as any
    expect(request('NodeStageVolume').volumeCapability).toMatchObject({
      mount: { fsType: 'xfs', mountFlags: ['***'] },
      accessMode: { mode: 'SINGLE_NODE_MULTI_WRITER' },
    })
    expect(request('NodeStageVolume').volumeContext).toEqual({ color: 'red' })
    expect(request('NodePublishVolume')).toMatchObject({
      readonly: true,
      volumeContext: { color: 'red', 'csi.storage.k8s.io/pod.uid': uid, 'csi.storage.k8s.io/pod.name': 'shop' },
    })
  })

  it('SYS-7 reads secrets for each call and stores them in no event or record', async () => {
    const world = await createAgentFixture({ settings: { secretKeys: [] } })
    await world.aVolume('orders', { csi: { nodeStageSecretRef: { namespace: 'default', name: 'keys' } } })
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(/FailedMount: .*secret keys in namespace default/)
    await world.server.post('/api/v1/namespaces/default/secrets', {
      metadata: { name: 'keys' },
      stringData: { password: 'hunter2' },
    })
    await world.untilRunning('shop')
    const stage = world.fake.record.calls.find(({ method }) => method === 'NodeStageVolume')
    expect(stage?.secretKeys).toEqual(['password'])
    expect(JSON.stringify([world.disk.show(), await world.events('shop')])).not.toContain('hunter2')
  })

  it('SYS-7 applies fsGroup by the driver’s policy, unless the driver applies it itself', async () => {
    const world = await createAgentFixture()
    const spec = { securityContext: { fsGroup: 2000, fsGroupChangePolicy: 'OnRootMismatch' } }
    await world.aVolume('typed', { csi: { fsType: 'ext4' } })
    await world.aVolume('untyped')
    const shop = await world.aPod('shop', ['typed', 'untyped'], { spec })
    await world.untilRunning('shop')
    const path = (name: string) => `${ROOT}/pods/${shop}/volumes/kubernetes.io~csi/pv-${name}/mount`
    expect(world.disk.groups.get(path('typed'))).toEqual({ group: 2000, readOnly: false, onlyOnRootMismatch: true })
    expect(world.disk.groups.has(path('untyped'))).toBe(false)

    const other = await createAgentFixture({
      settings: { node: ['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP'] },
      csiDriver: { attachRequired: false, fsGroupPolicy: 'File' },
    })
    await other.aVolume('orders')
    await other.aPod('shop', ['orders'], { spec })
    await other.untilRunning('shop')
    expect(other.disk.groups.size).toBe(0)
    const publish = other.fake.record.calls.find(({ method }) => method === 'NodePublishVolume')
    expect(publish?.request).toMatchObject({ volumeCapability: { mount: { volumeMountGroup: '2000' } } })
  })

  it('SYS-7 mounts a ReadWriteOncePod volume for one pod only', async () => {
    const world = await createAgentFixture()
    const modes = { accessModes: ['ReadWriteOncePod'] }
    await world.aVolume('orders', { pv: modes, claim: modes })
    await world.aPod('first', ['orders'])
    await world.untilRunning('first')
    await world.aPod('second', ['orders'])
    await world.until(async () => (await world.events('second')).length > 0, 'an event')
    expect((await world.events('second'))[0]).toMatch(/FailedMount: .*ReadWriteOncePod.*already in use by another pod/)
    expect(await world.phase('second')).toBe('Pending')
    await world.server.delete(`${PODS}/first`)
    await world.untilRunning('second')
  })
})

/** New paths, without the directories that the agent keeps. */
function leftovers(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after).filter((path) => !(path in before) && !KEPT.test(path))
}
const KEPT = /\/plugins\/kubernetes\.io(\/csi(\/fake\.stowage\.example|\/volumeDevices(\/staging|\/publish)?)?)?$/
