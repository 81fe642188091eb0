import { describe, expect, it } from 'vitest'
import { CLAIMS, createAgentFixture, DRIVER, NODE, PODS, ROOT } from './agent.fixture.ts'
import { noContainers } from './commands/containers.ts'

describe('the node agent', () => {
  it('SYS-7 stages and publishes a volume, then runs the pod', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    const uid = await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
    const target = `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-orders`
    expect(fixture.disk.mountPoints).toContain(`${target}/mount`)
    expect(JSON.parse(fixture.disk.snapshot()[`${target}/vol_data.json`]!)).toMatchObject({
      specVolID: 'pv-orders',
      driverName: DRIVER,
      nodeName: NODE,
      volumeLifecycleMode: 'Persistent',
    })
    const { status } = await fixture.pod('shop')
    expect(status.containerStatuses[0]).toMatchObject({ ready: true, started: true, restartCount: 0 })
    const conditions = Object.fromEntries(
      status.conditions.map((condition: { type: string; status: string }) => [condition.type, condition.status]),
    )
    expect(conditions).toMatchObject({ Ready: 'True', ContainersReady: 'True', Initialized: 'True' })
  })

  it('reports the generation of the pod that its status reflects', async () => {
    const fixture = await createAgentFixture()
    await fixture.createPod('shop', [])
    await fixture.waitUntilRunning('shop')
    const { metadata, status } = await fixture.pod('shop')
    expect(metadata.generation).toBe(1)
    expect(status.observedGeneration).toBe(1)
  })

  it('stops a pod at activeDeadlineSeconds, and unmounts its volumes', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('job', ['orders'], { spec: { activeDeadlineSeconds: 3_600 } })
    await fixture.waitUntilRunning('job')
    await fixture.server.clock.advance(3_590_000)
    await fixture.waitUntilIdle()
    expect(await fixture.phase('job')).toBe('Running')
    await fixture.server.clock.advance(11_000)
    await fixture.waitUntil(async () => (await fixture.phase('job')) === 'Failed', 'the pod to fail')
    expect((await fixture.pod('job')).status).toMatchObject({
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    })
    await fixture.waitUntil(() => fixture.disk.mountPoints.size === 0, 'the volume to be unmounted')
    await fixture.waitUntil(
      async () => (await fixture.events('job')).some((event) => event.startsWith('DeadlineExceeded: Pod was active')),
      'the event',
    )
  })

  it('fails a pod at activeDeadlineSeconds while it waits for a volume', async () => {
    const fixture = await createAgentFixture()
    await fixture.createPod('job', ['missing'], { spec: { activeDeadlineSeconds: 30 } })
    await fixture.waitUntil(async () => (await fixture.phase('job')) === 'Failed', 'the pod to fail')
    expect((await fixture.pod('job')).status).toMatchObject({
      reason: 'DeadlineExceeded',
      containerStatuses: [{ state: { waiting: {} } }],
    })
  })

  it("PIO-10 prepares a pod's containers before it stages and publishes volumes", async () => {
    const callsBefore: string[][] = []
    const prepare = async () => void callsBefore.push(fixture.calls())
    const fixture = await createAgentFixture({ agent: { containers: { ...noContainers(), prepare } } })
    await fixture.createVolume('orders')
    fixture.calls()
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    expect(callsBefore).toEqual([[]])
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
  })

  it('SYS-7 unpublishes and unstages the volumes of a deleted pod and cleans up the disk', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    const pathsBefore = fixture.disk.snapshot()
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.calls()
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.waitUntilIdle()
    expect(fixture.calls()).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume'])
    expect(fixture.disk.mountPoints.size).toBe(0)
    expect(newPaths(pathsBefore, fixture.disk.snapshot())).toEqual([])
  })

  it('SYS-7 stages a volume once for two pods, and unstages it with the last pod', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('one', ['orders'])
    await fixture.createPod('two', ['orders'])
    await fixture.waitUntilRunning('one')
    await fixture.waitUntilRunning('two')
    expect(fixture.calls().sort()).toEqual(['NodePublishVolume', 'NodePublishVolume', 'NodeStageVolume'])
    await fixture.server.delete(`${PODS}/one`)
    await fixture.waitUntilDeleted('one')
    expect(fixture.calls()).toEqual(['NodeUnpublishVolume'])
    await fixture.server.delete(`${PODS}/two`)
    await fixture.waitUntilDeleted('two')
    expect(fixture.calls()).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume'])
    expect(fixture.fake.record.overlaps).toEqual([])
  })

  it('SYS-7 cleans up after a pod that is deleted without a grace period', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    const pathsBefore = fixture.disk.snapshot()
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.server.delete(`${PODS}/shop?gracePeriodSeconds=0`)
    await fixture.waitUntil(() => fixture.disk.mountPoints.size === 0, 'everything to be unmounted')
    await fixture.waitUntilIdle()
    expect(newPaths(pathsBefore, fixture.disk.snapshot())).toEqual([])
  })

  it("SYS-7 publishes a block volume as a device with a link in the pod's directory", async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('raw', { pv: { volumeMode: 'Block' }, claim: { volumeMode: 'Block' } })
    const pathsBefore = fixture.disk.snapshot()
    const uid = await fixture.createPod('db', ['raw'], {
      container: { volumeMounts: [], volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] },
    })
    await fixture.waitUntilRunning('db')
    const target = `${ROOT}/plugins/kubernetes.io/csi/volumeDevices/publish/pv-raw/${uid}`
    expect(fixture.disk.snapshot()[`${ROOT}/pods/${uid}/volumeDevices/kubernetes.io~csi/pv-raw`]).toBe(`-> ${target}`)
    const stage = fixture.fake.record.calls.find(({ method }) => method === 'NodeStageVolume')
    expect(stage?.request).toMatchObject({ volumeCapability: { block: {} } })
    await fixture.server.delete(`${PODS}/db`)
    await fixture.waitUntilDeleted('db')
    await fixture.waitUntilIdle()
    expect(newPaths(pathsBefore, fixture.disk.snapshot())).toEqual([])
  })

  it('SYS-7 sends access mode, file system, mount options, readonly and pod info to the driver', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: false, podInfoOnMount: true } })
    await fixture.createVolume('orders', {
      pv: { mountOptions: ['noatime'] },
      csi: { fsType: 'xfs', volumeAttributes: { color: 'red' } },
    })
    const uid = await fixture.createPod('shop', ['orders'], { readOnly: true })
    await fixture.waitUntilRunning('shop')
    const requestOf = (method: string) =>
      fixture.fake.record.calls.find((call) => call.method === method)?.request as any
    expect(requestOf('NodeStageVolume').volumeCapability).toMatchObject({
      mount: { fsType: 'xfs', mountFlags: ['***'] },
      accessMode: { mode: 'SINGLE_NODE_MULTI_WRITER' },
    })
    expect(requestOf('NodeStageVolume').volumeContext).toEqual({ color: 'red' })
    expect(requestOf('NodePublishVolume')).toMatchObject({
      readonly: true,
      volumeContext: { color: 'red', 'csi.storage.k8s.io/pod.uid': uid, 'csi.storage.k8s.io/pod.name': 'shop' },
    })
  })

  it('SYS-7 passes secrets to the driver, and does not store them in events or records', async () => {
    const fixture = await createAgentFixture({ settings: { secretKeys: [] } })
    await fixture.createVolume('orders', { csi: { nodeStageSecretRef: { namespace: 'default', name: 'keys' } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(/FailedMount: .*secret keys in namespace default/)
    await fixture.server.post('/api/v1/namespaces/default/secrets', {
      metadata: { name: 'keys' },
      stringData: { password: 'hunter2' },
    })
    await fixture.waitUntilRunning('shop')
    const stage = fixture.fake.record.calls.find(({ method }) => method === 'NodeStageVolume')
    expect(stage?.secretKeys).toEqual(['password'])
    expect(JSON.stringify([fixture.disk.snapshot(), await fixture.events('shop')])).not.toContain('hunter2')
  })

  it('SYS-7 applies fsGroup according to the fsGroupPolicy of the driver, unless the driver has VOLUME_MOUNT_GROUP', async () => {
    const fixture = await createAgentFixture()
    const spec = { securityContext: { fsGroup: 2000, fsGroupChangePolicy: 'OnRootMismatch' } }
    await fixture.createVolume('typed', { csi: { fsType: 'ext4' } })
    await fixture.createVolume('untyped')
    const shop = await fixture.createPod('shop', ['typed', 'untyped'], { spec })
    await fixture.waitUntilRunning('shop')
    const path = (name: string) => `${ROOT}/pods/${shop}/volumes/kubernetes.io~csi/pv-${name}/mount`
    expect(fixture.disk.groups.get(path('typed'))).toEqual({ group: 2000, readOnly: false, onlyOnRootMismatch: true })
    expect(fixture.disk.groups.has(path('untyped'))).toBe(false)

    const fixtureWithMountGroup = await createAgentFixture({
      settings: { node: ['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP'] },
      csiDriver: { attachRequired: false, fsGroupPolicy: 'File' },
    })
    await fixtureWithMountGroup.createVolume('orders')
    await fixtureWithMountGroup.createPod('shop', ['orders'], { spec })
    await fixtureWithMountGroup.waitUntilRunning('shop')
    expect(fixtureWithMountGroup.disk.groups.size).toBe(0)
    const publish = fixtureWithMountGroup.fake.record.calls.find(({ method }) => method === 'NodePublishVolume')
    expect(publish?.request).toMatchObject({ volumeCapability: { mount: { volumeMountGroup: '2000' } } })
  })

  it('SYS-7 mounts a ReadWriteOncePod volume for one pod at a time', async () => {
    const fixture = await createAgentFixture()
    const modes = { accessModes: ['ReadWriteOncePod'] }
    await fixture.createVolume('orders', { pv: modes, claim: modes })
    await fixture.createPod('first', ['orders'])
    await fixture.waitUntilRunning('first')
    await fixture.createPod('second', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('second')).length > 0, 'an event')
    expect((await fixture.events('second'))[0]).toMatch(
      /FailedMount: .*ReadWriteOncePod.*already in use by another pod/,
    )
    expect(await fixture.phase('second')).toBe('Pending')
    await fixture.server.delete(`${PODS}/first`)
    await fixture.waitUntilRunning('second')
  })

  it('keeps a pod running while its claim is being deleted', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.server.delete(`${CLAIMS}/orders`)
    await fixture.server.patch(`${PODS}/shop`, { metadata: { labels: { triggerReconcile: 'yes' } } }, 'merge')
    await fixture.waitUntilIdle()
    expect(await fixture.phase('shop')).toBe('Running')
    expect(await fixture.events('shop')).toEqual([])
    fixture.kill()
    fixture.start()
    await fixture.waitUntilIdle()
    expect(await fixture.events('shop')).toEqual([])
  })
})

/** Returns the paths that were added, except for directories that the agent does not remove. */
function newPaths(pathsBefore: Record<string, string>, pathsAfter: Record<string, string>): string[] {
  return Object.keys(pathsAfter).filter((path) => !(path in pathsBefore) && !PERMANENT_DIRECTORIES.test(path))
}
const PERMANENT_DIRECTORIES =
  /\/plugins\/kubernetes\.io(\/csi(\/fake\.stowage\.example|\/volumeDevices(\/staging|\/publish)?)?)?$/
