// Tests an agent with a node's permissions, which reads claims, volumes and attachments by name.
import { describe, expect, it } from 'vitest'
import type { Stored } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { forbidden } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'
import { loadRoles, nameOfRequest, type RoleRequest } from '../client/roles.fixture.ts'
import { asStock } from '../client/stock-server.fixture.ts'
import { attachmentNameOf } from '../volumes/attachment-names.ts'
import { type AgentFixtureOptions, CLAIMS, createAgentFixture, DRIVER, NODE, PODS, VOLUMES } from './agent.fixture.ts'
import { readVolumeObjectsByName } from './volume-objects.ts'

const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'
const GI = 1024 ** 3

/** Starts an agent whose client has a node's permissions. `listDenied` returns the requests that were denied. */
async function startNode(options: AgentFixtureOptions = {}) {
  const role = loadRoles(['node'], 'kube-node-lease')
  const deniedRequests = new Set<string>()
  const requests: string[] = []
  const asNode = (client: Client) =>
    asStock(client, {
      allows({ kind, ...fields }) {
        const request: RoleRequest = { ...fields, group: kind.group, plural: kind.plural }
        requests.push(nameOfRequest(request))
        const isAllowed = role.allows(request)
        if (!isAllowed) deniedRequests.add(nameOfRequest(request))
        return isAllowed
      },
    })
  const { wrapClient = (client: Client) => client } = options
  const fixture = await createAgentFixture({
    ...options,
    wrapClient: (client) => wrapClient(asNode(client)),
    agent: { readsByName: true },
  })
  return {
    ...fixture,
    requests,
    listDenied: () => [...deniedRequests],
    async attach(volume: string): Promise<void> {
      const [handle] = Object.keys(fixture.fake.state.volumes)
      const name = attachmentNameOf({ driver: DRIVER, handle: handle!, nodeName: NODE })
      const source = { persistentVolumeName: volume }
      await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
      await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
      const volumesAttached = [{ name: `kubernetes.io/csi/${DRIVER}^${handle}`, devicePath: '' }]
      await fixture.server.patch(`/api/v1/nodes/${NODE}/status`, { status: { volumesAttached } }, 'merge')
    },
  }
}

describe('readVolumeObjectsByName', () => {
  it('forgets how long a deleted or terminated pod has waited', async () => {
    const objects = readVolumeObjectsByName({
      client: {} as Client,
      nodeName: NODE,
      csiDrivers: { get: () => undefined },
      random: () => 0.5,
      podCount: () => 100,
    })
    const pod = {
      metadata: { name: 'shop', namespace: 'default', uid: 'u1', resourceVersion: '1' },
      spec: { containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'orders' } }] },
    } as unknown as Stored<Pod>
    const emptyReader = { get: () => undefined }
    const poll = () =>
      objects.pollAfterMs(
        pod,
        { claims: emptyReader, volumes: emptyReader, attachments: emptyReader },
        { isMounted: false },
      )
    const firstMs = poll()
    expect(poll()).toBeGreaterThan(firstMs)
    objects.forget('u1')
    expect(poll()).toBe(firstMs)
  })
})

describe("an agent with a node's permissions", () => {
  it('SYS-9 starts and removes a pod whose volume is attached, without a denied request', async () => {
    const node = await startNode({ csiDriver: { attachRequired: true } })
    await node.createVolume('orders')
    await node.createPod('shop', ['orders'])
    await node.waitUntil(
      async () => JSON.stringify((await node.pod('shop')).status).includes('is not attached to the node yet'),
      'the reason in the pod status',
    )
    await node.attach('pv-orders')
    await node.waitUntilRunning('shop')
    await node.server.delete(`${PODS}/shop`)
    await node.waitUntilDeleted('shop')
    expect(node.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'])
    expect(node.listDenied()).toEqual([])
  })

  it('SYS-7 starts a pod when its claim is bound after the pod was assigned', async () => {
    const node = await startNode()
    await node.createPod('shop', ['orders'])
    await node.waitUntil(
      async () => JSON.stringify((await node.pod('shop')).status).includes('\\"orders\\" not found'),
      'the reason in the pod status',
    )
    await node.createVolume('orders')
    await node.waitUntilRunning('shop')
    expect(node.listDenied()).toEqual([])
  })

  it('REX-1 SYS-7 expands a volume of a running pod within 10 seconds', async () => {
    const node = await startNode()
    await node.createVolume('orders')
    await node.createPod('shop', ['orders'])
    await node.waitUntilRunning('shop')
    for (const volume of Object.values(node.fake.state.volumes)) volume.capacityBytes = 2 * GI
    await node.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: '2Gi' } } }, 'merge')
    const status = {
      allocatedResources: { storage: '2Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
    }
    await node.server.patch(`${CLAIMS}/orders/status`, { status }, 'merge')
    const startMs = node.server.clock.nowMs()
    await node.waitUntil(
      async () => (await node.server.get(`${CLAIMS}/orders`)).json.status.capacity.storage === '2Gi',
      'the claim to have 2Gi',
    )
    expect(node.server.clock.nowMs() - startMs).toBeLessThan(10_000)
    expect(node.listDenied()).toEqual([])
  })

  it.each([
    { pods: 1, intervalMs: 3_000 },
    { pods: 20, intervalMs: 10_000 },
    { pods: 150, intervalMs: 60_000 },
  ])('reads the claims of $pods running pods about every $intervalMs ms', async ({ pods, intervalMs }) => {
    const node = await startNode()
    await node.createVolume('orders')
    const names = Array.from({ length: pods }, (_, index) => `shop-${index}`)
    for (const name of names) await node.createPod(name, ['orders'])
    for (const name of names) await node.waitUntilRunning(name)
    await node.waitUntilIdle()
    node.requests.length = 0
    for (let round = 0; round < 10; round++) {
      await node.server.clock.advance(intervalMs)
      await node.waitUntilIdle()
    }
    const reads = node.requests.filter((request) => request === 'get persistentvolumeclaims')
    expect(reads.length / pods).toBeGreaterThanOrEqual(8)
    expect(reads.length / pods).toBeLessThanOrEqual(11)
  })

  it('SYS-29 waits while the authorizer has not seen that its pod uses the claim', async () => {
    let denials = 0
    const node = await startNode({
      wrapClient: (client) => ({
        ...client,
        async get(kind, ref, options) {
          if ((kind as object) === persistentVolumeClaimKind && denials < 3) {
            denials++
            throw forbidden(
              persistentVolumeClaimKind,
              ref.name,
              'User "system:node:node-1" cannot get resource "persistentvolumeclaims" in API group "" in the namespace ' +
                '"default": no relationship found between node \'node-1\' and this object',
            )
          }
          return client.get(kind, ref, options)
        },
      }),
    })
    await node.createVolume('orders')
    await node.createPod('shop', ['orders'])
    await node.waitUntilRunning('shop')
    expect(denials).toBe(3)
    expect(await node.events('shop')).toEqual([])
  })
})
