import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { createNodeTopologyController } from '../../controllers/node-topology/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createAgentFixture, DRIVER, NODE, ROOT } from '../agent.fixture.ts'

const NODE_URL = `/api/v1/nodes/${NODE}`
const CSI_NODE = `/apis/storage.k8s.io/v1/csinodes/${NODE}`
const segments = { 'example.com/zone': 'a', 'example.com/node': NODE }
const settings = { nodes: [{ id: NODE, segments, maxVolumes: 7 }] }

describe('driver registration', () => {
  it('CAP-3 writes topology labels, sorted keys, node ID and volume limit', async () => {
    const { server, notifiedErrors } = await createAgentFixture({ settings })
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
    expect(notifiedErrors).toEqual([''])
  })

  it('CAP-3 fails while a label of the node contradicts the topology, and reports both values', async () => {
    const fixture = await createAgentFixture({ settings, autoStart: false })
    await fixture.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    fixture.start()
    await fixture.waitUntil(() => fixture.notifiedErrors.length > 0, 'the notification')
    expect(fixture.notifiedErrors[0]).toMatch(/example.com\/zone=b, but driver "fake.stowage.example" reports a/)
    expect(fixture.agent.drivers().registered).toEqual([])
    expect(Object.values(fixture.agent.drivers().problems)[0]).toContain('example.com/zone=b')
    expect((await fixture.server.get(CSI_NODE)).json.spec.drivers ?? []).toEqual([])
    await fixture.server.patch(NODE_URL, { metadata: { labels: { 'example.com/zone': null } } }, 'merge')
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect(fixture.notifiedErrors.at(-1)).toBe('')
  })

  it('sets the condition TopologyConflict once while a driver contradicts a label, and ends it when it registers', async () => {
    const fixture = await createAgentFixture({ settings, autoStart: false })
    await fixture.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    const conditions = async () => (await fixture.server.get(NODE_URL)).json.status?.conditions ?? []
    const conflict = async () => (await conditions()).find(({ type }: { type: string }) => type === 'TopologyConflict')
    fixture.start()
    await fixture.waitUntil(() => fixture.notifiedErrors.length > 2, 'the third attempt')
    const { lastTransitionTime, ...condition } = await conflict()
    expect(condition).toMatchObject({ status: 'True', reason: 'LabelConflict' })
    expect(condition.message).toContain('example.com/zone=b, but driver "fake.stowage.example" reports a')
    const eventCounts = async () =>
      (await fixture.server.get('/api/v1/events')).json.items
        .filter(({ reason }: { reason: string }) => reason === 'TopologyConflict')
        .map(({ count }: { count: number }) => count)
    await fixture.waitUntil(async () => (await eventCounts()).length > 0, 'the event')
    await fixture.waitUntil(() => fixture.notifiedErrors.length > 4, 'the fifth attempt')
    expect(await eventCounts()).toEqual([1])
    expect((await conflict()).lastTransitionTime).toBe(lastTransitionTime)

    await fixture.server.patch(NODE_URL, { metadata: { labels: { 'example.com/zone': null } } }, 'merge')
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect(await conflict()).toMatchObject({ status: 'False', reason: 'NoConflict' })
  })

  it('ends the condition TopologyConflict when the socket of the rejected driver is removed', async () => {
    const fixture = await createAgentFixture({ settings, autoStart: false })
    await fixture.server.post('/api/v1/nodes', { metadata: { name: NODE, labels: { 'example.com/zone': 'b' } } })
    const conflictStatus = async () =>
      (await fixture.server.get(NODE_URL)).json.status?.conditions?.find(
        ({ type }: { type: string }) => type === 'TopologyConflict',
      )?.status
    fixture.start()
    await fixture.waitUntil(async () => (await conflictStatus()) === 'True', 'the condition')
    fixture.sockets.splice(0)
    await fixture.waitUntil(async () => (await conflictStatus()) === 'False', 'the condition to end')
  })

  it('CAP-3 removes a driver from CSINode when its socket is removed, but does not remove the labels', async () => {
    const fixture = await createAgentFixture({ settings })
    fixture.sockets.splice(0)
    await fixture.waitUntil(() => fixture.agent.drivers().registered.length === 0, 'the driver to be unregistered')
    expect((await fixture.server.get(CSI_NODE)).json.spec.drivers ?? []).toEqual([])
    const { metadata } = (await fixture.server.get(NODE_URL)).json
    expect(metadata.annotations?.['csi.volume.kubernetes.io/nodeid']).toBeUndefined()
    expect(metadata.labels).toMatchObject(segments)
  })

  it('CAP-3 registers a recreated socket again', async () => {
    const fixture = await createAgentFixture({ settings })
    fixture.sockets.splice(0, 1, { path: fixture.sockets[0]!.path, id: 'another' })
    await fixture.waitUntil(() => fixture.notifiedErrors.length === 2, 'the second notification')
    expect(fixture.agent.drivers().registered).toEqual([DRIVER])
  })

  it('CAP-3 replaces the CSINode of an earlier node with the same name', async () => {
    const fixture = await createAgentFixture({ settings, autoStart: false })
    const owner = { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'another-owner' }
    await fixture.server.post('/apis/storage.k8s.io/v1/csinodes', {
      metadata: { name: NODE, ownerReferences: [owner] },
      spec: { drivers: [{ name: 'old.example.com', nodeID: 'x', topologyKeys: [] }] },
    })
    fixture.start()
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    const { metadata, spec } = (await fixture.server.get(CSI_NODE)).json
    expect(spec.drivers.map(({ name }: { name: string }) => name)).toEqual([DRIVER])
    expect(metadata.ownerReferences[0].uid).not.toBe('another-owner')
  })

  it('reports a driver that changes its topology keys on restart while a volume is located by a former key', async () => {
    const fixture = await createAgentFixture({ settings })
    const { server } = fixture
    const matchExpressions = [{ key: 'example.com/node', operator: 'In', values: [NODE] }]
    await server.post('/api/v1/persistentvolumes', {
      metadata: { name: 'data', annotations: { 'pv.kubernetes.io/provisioned-by': DRIVER } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        csi: { driver: DRIVER, volumeHandle: 'data' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      },
    })
    const client = server.clientOf('node-topology')
    const deps = { clock: server.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet({ client, ...deps })
    const abort = new AbortController()
    const run = createNodeTopologyController({ client, caches, ...deps }).run(abort.signal)
    const mismatch = async () =>
      (await server.get(NODE_URL)).json.status.conditions.find(
        ({ type }: { type: string }) => type === 'TopologyMismatch',
      )
    const restartDriver = async (newSegments: object) => {
      ;(fixture.fake.settings.nodes as any[])[0] = { id: NODE, segments: newSegments }
      const [{ path, id }] = fixture.sockets as [{ path: string; id: string }]
      fixture.sockets.splice(0, 1, { path, id: `${id}+` })
    }
    await restartDriver({ 'example.com/zone': 'a' })
    await fixture.waitUntil(async () => (await mismatch())?.status === 'True', 'the condition')
    expect(await mismatch()).toMatchObject({
      reason: 'KeysChanged',
      message: expect.stringContaining('require the label example.com/node: keep it on the node'),
    })
    await restartDriver(segments)
    await fixture.waitUntil(async () => (await mismatch())?.status === 'False', 'the condition to end')
    await fixture.waitUntil(() => fixture.notifiedErrors.length === 3, 'the third notification')
    abort.abort()
    await server.advanceUntilSettled(run)
    await caches.stop()
  })

  it('CAP-3 replaces the CSINode entry when the topology has changed', async () => {
    const fixture = await createAgentFixture({ settings })
    await fixture.stop()
    ;(fixture.fake.settings.nodes as any[])[0] = { id: NODE, segments: { 'example.com/zone': 'a' } }
    fixture.start()
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect((await fixture.server.get(CSI_NODE)).json.spec.drivers[0].topologyKeys).toEqual(['example.com/zone'])
  })

  it('CAP-3 registers a driver without a registrar by its socket', async () => {
    const fixture = await createAgentFixture({ autoStart: false })
    fixture.sockets.splice(0)
    fixture.stopDriver()
    fixture.start({ driverSockets: ['/run/csi.sock'] })
    await fixture.waitUntil(() => Object.keys(fixture.agent.drivers().problems).length > 0, 'the registration error')
    expect(fixture.agent.drivers().registered).toEqual([])
    fixture.startDriver()
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
    expect(fixture.notifiedErrors).toEqual([])
  })

  it('rejects a second driver with the same name', async () => {
    const fixture = await createAgentFixture()
    fixture.sockets.push({ path: `${ROOT}/plugins_registry/second.sock`, id: '2' })
    await fixture.waitUntil(() => fixture.notifiedErrors.length > 1, 'the second notification')
    expect(fixture.notifiedErrors[1]).toContain('already registered on this node')
    expect(fixture.agent.drivers().registered).toEqual([DRIVER])
  })

  it('rejects one of two drivers with the same name that register at the same time', async () => {
    const fixture = await createAgentFixture({ autoStart: false })
    fixture.sockets.push({ path: `${ROOT}/plugins_registry/second.sock`, id: '2' })
    fixture.start()
    await fixture.waitUntil(() => fixture.notifiedErrors.length > 1, 'both notifications')
    expect([...fixture.notifiedErrors].sort()).toEqual(['', expect.stringContaining('already registered on this node')])
  })
})
