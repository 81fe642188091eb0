// Tests the node topology controller on an API server: the condition and events of nodes whose labels, drivers and volumes do
// not match, and the requests that it sends.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createNodeTopologyController } from './node-topology.ts'

const DRIVER = 'disks.example.com'
const ZONE = 'topology.example.com/zone'
const RACK = 'topology.example.com/rack'

let server: ServerFixture
let admin: Client
let requests: string[]
/** Called before each get of the controller. */
let beforeGet: (() => Promise<void>) | undefined
let stop: () => Promise<void>
beforeEach(async () => {
  server = await createServerFixture()
  admin = server.client()
  requests = []
  beforeGet = undefined
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

async function settle(): Promise<void> {
  for (let turn = 0; turn < 80; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const advance = async (ms: number) => {
  await server.clock.advance(ms)
  await settle()
}

async function start() {
  const { clock } = server
  const client = recordRequests(server.clientOf('node-topology'))
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  const controller = createNodeTopologyController({ client, caches, clock, random: () => 0.5, log: silentLog })
  const abort = new AbortController()
  const run = controller.run(abort.signal)
  stop = async () => {
    abort.abort()
    await run
    await caches.stop()
  }
  await settle()
  return { stateOf: (name: string) => controller.queues[0]!.stateOf(name) }
}

function recordRequests(client: Client): Client {
  const recorded =
    (verb: 'get' | 'patch') =>
    async (kind: any, ref: any, ...rest: any[]) => {
      if (kind.kind === 'Node') requests.push(`${verb} ${ref.name}`)
      if (verb === 'get') await beforeGet?.()
      return (client[verb] as any)(kind, ref, ...rest)
    }
  return { ...client, get: recorded('get'), patch: recorded('patch') }
}

const setLabels = async (name: string, labels: Readonly<Record<string, string | null>>) => {
  await admin.patch(nodeKind, { name }, { type: 'merge', body: { metadata: { labels } } })
  await settle()
}

/** Registers the driver as the node agent does: nodeID and topologyKeys are immutable, so the entry is removed first. */
async function registerDriver(name: string, topologyKeys: readonly string[], driver = DRIVER): Promise<void> {
  const csiNode = await admin.get(csiNodeKind, { name })
  const otherDrivers = csiNode.spec.drivers.filter((entry) => entry.name !== driver)
  const removed = await admin.update(csiNodeKind, { ...csiNode, spec: { drivers: otherDrivers } })
  const entry = { name: driver, nodeID: name, topologyKeys: [...topologyKeys] }
  await admin.update(csiNodeKind, { ...removed, spec: { drivers: [...otherDrivers, entry] } })
  await settle()
}

async function createNode(name: string, labels: Readonly<Record<string, string>>, keys?: readonly string[]) {
  await admin.create(nodeKind, { metadata: { name, labels } } as never)
  const drivers = keys ? [{ name: DRIVER, nodeID: name, topologyKeys: [...keys] }] : []
  await admin.create(csiNodeKind, { metadata: { name }, spec: { drivers } } as never)
  await settle()
}

const createVolume = async (
  name: string,
  labels: Readonly<Record<string, string>>,
  provisioner: string | undefined,
) => {
  const matchExpressions = Object.entries(labels).map(([key, value]) => ({ key, operator: 'In', values: [value] }))
  await admin.create(persistentVolumeKind, {
    metadata: { name, ...(provisioner ? { annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } } : {}) },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: DRIVER, volumeHandle: name },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  } as never)
  await settle()
}

async function conditionOf(name: string) {
  const { status } = await admin.get(nodeKind, { name })
  const condition = status?.conditions?.find(({ type }) => type === 'TopologyMismatch')
  return condition && { status: condition.status, reason: condition.reason, message: condition.message }
}

async function eventReasons(): Promise<string[]> {
  await advance(10_000)
  return (await admin.list(eventKind)).items.map(({ reason = '' }) => reason).sort()
}

describe('the node topology controller', () => {
  it('sets the condition when a label disappears, ends it when the label returns, and sends no request in between', async () => {
    await createNode('a', { [ZONE]: 'east' }, [ZONE])
    await createNode('b', { [ZONE]: 'west' }, [ZONE])
    const { stateOf } = await start()
    expect(requests).toEqual([])

    await setLabels('a', { [ZONE]: null })
    expect(await conditionOf('a')).toEqual({
      status: 'True',
      reason: 'LabelsMissing',
      message: expect.stringContaining(`the node lacks topology labels: ${ZONE} of the CSI driver ${DRIVER}`),
    })
    expect(await conditionOf('b')).toBeUndefined()
    expect(stateOf('a')).toMatchObject({ is: 'stuck', details: { reason: 'LabelsMissing' } })
    expect(requests).toEqual(['get a', 'patch a'])
    expect(await eventReasons()).toEqual(['TopologyMismatch'])
    await advance(3_600_000)
    expect(requests).toEqual(['get a', 'patch a'])

    await setLabels('a', { [ZONE]: 'east' })
    expect(await conditionOf('a')).toMatchObject({ status: 'False', reason: 'TopologyMatches' })
    expect(stateOf('a')).toBeUndefined()
    expect(await eventReasons()).toContain('TopologyMatches')
  })

  it('sets the condition when a driver changes its keys while volumes are located by the previous ones', async () => {
    await createNode('a', { [ZONE]: 'east' }, [ZONE])
    await createNode('b', { [ZONE]: 'west' }, [ZONE])
    await createVolume('data', { [ZONE]: 'east' }, DRIVER)
    const { stateOf } = await start()
    expect(requests).toEqual([])

    // The agent writes the label of the new key before the CSINode, and keeps the other label.
    await setLabels('a', { [RACK]: '1' })
    await registerDriver('a', [RACK])
    expect(await conditionOf('a')).toMatchObject({
      status: 'True',
      reason: 'KeysChanged',
      message: expect.stringContaining(`require the label ${ZONE}: keep it on the node`),
    })
    expect(await conditionOf('b')).toBeUndefined()
    expect(stateOf('a')).toMatchObject({ is: 'stuck' })

    await setLabels('b', { [RACK]: '2' })
    await registerDriver('b', [RACK])
    await setLabels('b', { [ZONE]: null })
    expect(await conditionOf('b')).toMatchObject({ message: expect.stringContaining(`${ZONE}, which the node lacks`) })

    const writes = requests.length
    await advance(3_600_000)
    expect(requests).toHaveLength(writes)
    await admin.delete(persistentVolumeKind, { name: 'data' })
    await admin.patch(
      persistentVolumeKind,
      { name: 'data' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    )
    await settle()
    for (const name of ['a', 'b']) expect(await conditionOf(name)).toMatchObject({ status: 'False' })
  })

  it('ends the condition when the driver registers its previous keys again', async () => {
    await createNode('a', { [ZONE]: 'east', [RACK]: '1' }, [RACK])
    await createVolume('data', { [ZONE]: 'east' }, DRIVER)
    await start()
    expect(await conditionOf('a')).toMatchObject({ status: 'True', reason: 'KeysChanged' })
    await registerDriver('a', [ZONE, RACK])
    expect(await conditionOf('a')).toMatchObject({ status: 'False' })
  })

  it('ignores a key that only some nodes have, volumes that an administrator has located, and nodes without drivers', async () => {
    await createNode('plain', { [ZONE]: 'east' }, [ZONE])
    await createNode('racked', { [ZONE]: 'east', [RACK]: '1' }, [ZONE, RACK])
    await createNode('empty', {})
    await createVolume('racked', { [ZONE]: 'east', [RACK]: '1' }, DRIVER)
    await createVolume('static', { 'kubernetes.io/hostname': 'plain' }, undefined)
    await setLabels('plain', { 'kubernetes.io/hostname': 'plain' })
    await start()
    for (const name of ['plain', 'racked', 'empty']) expect(await conditionOf(name)).toBeUndefined()
    expect(requests).toEqual([])
  })

  it('writes nothing if the cache shows the drivers of a node earlier than its labels', async () => {
    await createNode('a', {}, [ZONE])
    beforeGet = async () => {
      beforeGet = undefined
      await admin.patch(nodeKind, { name: 'a' }, { type: 'merge', body: { metadata: { labels: { [ZONE]: 'east' } } } })
    }
    await start()
    expect(requests).toEqual(['get a'])
    expect(await conditionOf('a')).toBeUndefined()
  })

  it('writes each of many nodes once when all of them lose a label', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `node-${index}`)
    for (const name of names) {
      await admin.create(nodeKind, { metadata: { name, labels: {} } } as never)
      const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: [ZONE] }]
      await admin.create(csiNodeKind, { metadata: { name }, spec: { drivers } } as never)
    }
    await start()
    for (let turn = 0; turn < 10; turn++) await settle()
    await advance(3_600_000)
    expect(requests.filter((request) => request.startsWith('patch'))).toHaveLength(names.length)
    expect(new Set(requests).size).toBe(2 * names.length)
  })
})
