import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { Registration } from '../../csi/gen/registration_pb.js'
import { createAgentFixture, DRIVER, NODE, ROOT } from '../agent.fixture.ts'
import { createPluginCalls } from './plugin-calls.ts'
import { createPluginDirectory } from './plugin-directory.ts'
import { bestVersion, compareVersions, parseVersion } from './versions.ts'

const NODE_URL = `/api/v1/nodes/${NODE}`
const CSI_NODE = `/apis/storage.k8s.io/v1/csinodes/${NODE}`
const segments = { 'example.com/zone': 'a', 'example.com/node': NODE }
const settings = { nodes: [{ id: NODE, segments, maxVolumes: 7 }] }

describe('registration of a driver', () => {
  it('CAP-3 writes topology labels, sorted keys, node ID and volume limit', async () => {
    const { server, notified } = await createAgentFixture({ settings })
    const node = (await server.get(NODE_URL)).json
    expect(node.metadata.labels).toMatchObject({
      ...segments,
      'kubernetes.io/hostname': NODE,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
    })
    expect(JSON.parse(node.metadata.annotations['csi.volume.kubernetes.io/nodeid'])).toEqual({ [DRIVER]: NODE })
    const csiNode = (await server.get(CSI_NODE)).json
    expect(csiNode.spec.drivers).toEqual([
      { name: DRIVER, nodeID: NODE, topologyKeys: ['example.com/node', 'example.com/zone'], allocatable: { count: 7 } },
    ])
    expect(csiNode.metadata.ownerReferences).toMatchObject([{ kind: 'Node', name: NODE, uid: node.metadata.uid }])
    expect(notified).toEqual([''])
  })

  it('CAP-3 fails with both values while a label contradicts the topology', async () => {
    const world = await createAgentFixture({ settings, starts: false })
    await world.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    world.start()
    await world.until(() => world.notified.length > 0, 'the notification')
    expect(world.notified[0]).toMatch(/example.com\/zone=b, but driver "fake.stowage.example" reports a/)
    expect(world.agent.drivers().registered).toEqual([])
    expect(Object.values(world.agent.drivers().problems)[0]).toContain('example.com/zone=b')
    expect((await world.server.get(CSI_NODE)).json.spec.drivers ?? []).toEqual([])
    await world.server.patch(NODE_URL, { metadata: { labels: { 'example.com/zone': null } } }, 'merge')
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect(world.notified.at(-1)).toBe('')
  })

  it('CAP-3 removes a driver from CSINode when its socket is removed, and keeps labels', async () => {
    const world = await createAgentFixture({ settings })
    world.sockets.splice(0)
    await world.until(() => world.agent.drivers().registered.length === 0, 'the driver to be unregistered')
    expect((await world.server.get(CSI_NODE)).json.spec.drivers ?? []).toEqual([])
    const { metadata } = (await world.server.get(NODE_URL)).json
    expect(metadata.annotations?.['csi.volume.kubernetes.io/nodeid']).toBeUndefined()
    expect(metadata.labels).toMatchObject(segments)
  })

  it('CAP-3 registers a recreated socket again', async () => {
    const world = await createAgentFixture({ settings })
    world.sockets.splice(0, 1, { path: world.sockets[0]!.path, id: 'another' })
    await world.until(() => world.notified.length === 2, 'the second notification')
    expect(world.agent.drivers().registered).toEqual([DRIVER])
  })

  it('CAP-3 the CSINode of an earlier node of the same name is replaced', async () => {
    const world = await createAgentFixture({ settings, starts: false })
    const owner = { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'another-owner' }
    await world.server.post('/apis/storage.k8s.io/v1/csinodes', {
      metadata: { name: NODE, ownerReferences: [owner] },
      spec: { drivers: [{ name: 'old.example.com', nodeID: 'x', topologyKeys: [] }] },
    })
    world.start()
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    const { metadata, spec } = (await world.server.get(CSI_NODE)).json
    expect(spec.drivers.map(({ name }: { name: string }) => name)).toEqual([DRIVER])
    expect(metadata.ownerReferences[0].uid).not.toBe('another-owner')
  })

  it('CAP-3 replaces the CSINode entry when the topology has changed', async () => {
    const world = await createAgentFixture({ settings })
    await world.stop()
    ;(world.fake.settings.nodes as any[])[0] = { id: NODE, segments: { 'example.com/zone': 'a' } }
    world.start()
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect((await world.server.get(CSI_NODE)).json.spec.drivers[0].topologyKeys).toEqual(['example.com/zone'])
  })

  it('CAP-3 registers a driver without a registrar by its socket', async () => {
    const world = await createAgentFixture({ starts: false })
    world.sockets.splice(0)
    world.driverGoes()
    world.start({ driverSockets: ['/run/csi.sock'] })
    await world.until(() => Object.keys(world.agent.drivers().problems).length > 0, 'the agent to complain')
    expect(world.agent.drivers().registered).toEqual([])
    world.driverComes()
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect(world.notified).toEqual([])
  })

  it('SYS-7 rejects a second driver of the same name', async () => {
    const world = await createAgentFixture()
    world.sockets.push({ path: `${ROOT}/plugins_registry/second.sock`, id: '2' })
    await world.until(() => world.notified.length > 1, 'the second notification')
    expect(world.notified[1]).toContain('registered on this node already')
    expect(world.agent.drivers().registered).toEqual([DRIVER])
  })
})

describe('the node', () => {
  it('SYS-7 becomes Ready with its size and renews its lease', async () => {
    const world = await createAgentFixture()
    const { status } = (await world.server.get(NODE_URL)).json
    expect(status.conditions.find(({ type }: { type: string }) => type === 'Ready')).toMatchObject({ status: 'True' })
    expect(status.capacity).toMatchObject({ cpu: '4', memory: '8Gi', pods: '110' })
    const lease = async () =>
      (await world.server.get(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`)).json.spec
    const { renewTime, leaseDurationSeconds } = await lease()
    expect(leaseDurationSeconds).toBe(40)
    await world.until(async () => (await lease()).renewTime > renewTime, 'the lease to be renewed')
  })

  it('SYS-7 rejects the name of a running agent and names its holder', async () => {
    const first = await createAgentFixture()
    const before = (await first.server.get(NODE_URL)).json.metadata.resourceVersion
    await first.stop()
    first.start({ identity: 'another' })
    const error = await first.ended
    expect(error?.name).toBe('NodeNameTakenError')
    expect(error?.message).toMatch(
      /"node-1" is used by another agent \(agent-1\), which renewed its lease \d+ s ago\. Choose/,
    )
    expect((await first.server.get(NODE_URL)).json.metadata.resourceVersion).toBe(before)
  })

  it('SYS-7 takes over an expired name, and the old agent stops', async () => {
    const world = await createAgentFixture()
    await world.stop()
    await world.server.clock.advance(41_000)
    world.start({ identity: 'another' })
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the second agent to start')
    const second = world.ended
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`
    const { spec } = (await world.server.get(path)).json
    expect(spec.holderIdentity).toBe('another')
    const renewTime = new Date(world.server.clock.nowMs() + 60_000).toISOString().replace('Z', '000Z')
    await world.server.patch(path, { spec: { holderIdentity: 'a third', renewTime } }, 'merge')
    let ended: Error | undefined
    void second.then((error) => {
      ended = error
    })
    await world.until(() => ended !== undefined, 'the agent that lost its name to stop')
    expect(ended?.name).toBe('NodeNameTakenError')
  })

  it('SYS-7 a restarted agent keeps its name', async () => {
    const world = await createAgentFixture()
    world.kill()
    world.start()
    await world.until(() => world.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
  })
})

describe('versions', () => {
  it('SYS-7 uses the highest 1.x and rejects others', () => {
    expect(bestVersion(['1.0.0', '1.2', 'v1.10.0-rc1', '2.0.0'])).toEqual([1, 10, 0])
    expect(bestVersion([])).toMatch(/reports no protocol version/)
    expect(bestVersion(['0.3', '2.0'])).toMatch(/it supports 0.3, 2.0/)
    expect(bestVersion(['1.0.0', 'latest'])).toMatch(/"latest"/)
  })

  it('SYS-7 orders versions numerically', () => {
    const version = fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99))
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(parseVersion(a.join('.'))).toEqual(a)
        const byHand = a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
        expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(byHand))
      }),
    )
  })
})

describe('over real sockets', () => {
  it('SYS-7 registers a plugin over real sockets, as the kubelet does', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-registry-'))
    const path = join(dir, 'deep', 'driver-reg.sock')
    const directory = createPluginDirectory({ path: dir, log: silentLog })
    expect(await directory.list()).toEqual([])
    const notifications: object[] = []
    const stop = await serveRegistrar(path, notifications)
    onTestFinished(async () => {
      stop()
      await rm(dir, { recursive: true, force: true })
    })
    const [found] = await directory.list()
    expect(found?.path).toBe(path)
    const calls = createPluginCalls({ clock: systemClock() })
    expect(await calls.getInfo(path)).toMatchObject({ type: 'CSIPlugin', name: 'x.example.com', endpoint: '/csi.sock' })
    await calls.notify(path)
    await calls.notify(path, 'no')
    expect(notifications).toMatchObject([
      { pluginRegistered: true, error: '' },
      { pluginRegistered: false, error: 'no' },
    ])
    await expect(calls.getInfo(join(dir, 'missing.sock'))).rejects.toThrow(/GetInfo at .*missing.sock/)
  })
})

async function serveRegistrar(path: string, notifications: object[]): Promise<() => void> {
  const { mkdir } = await import('node:fs/promises')
  await mkdir(join(path, '..'), { recursive: true })
  const server = new Server()
  const { getInfo, notifyRegistrationStatus } = Registration.method
  const definition = (method: typeof getInfo | typeof notifyRegistrationStatus) => ({
    path: `/pluginregistration.Registration/${method.name}`,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (message: any) => Buffer.from(toBinary(method.input as any, message)),
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input as any, bytes),
    responseSerialize: (message: any) => Buffer.from(toBinary(method.output as any, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(method.output as any, bytes),
  })
  server.addService(
    { getInfo: definition(getInfo), notify: definition(notifyRegistrationStatus) },
    {
      getInfo: (_call: unknown, answer: any) =>
        answer(
          null,
          create(getInfo.output, {
            type: 'CSIPlugin',
            name: 'x.example.com',
            endpoint: '/csi.sock',
            supportedVersions: ['1.0.0'],
          }),
        ),
      notify: (call: any, answer: any) => {
        notifications.push(call.request)
        answer(null, create(notifyRegistrationStatus.output))
      },
    },
  )
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  )
  return () => server.forceShutdown()
}
