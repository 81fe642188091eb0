import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import { createCluster } from '../../../diagnosis/cluster.ts'
import { readSnapshot } from '../../../diagnosis/index.ts'
import { aClaim, aPod } from '../../../diagnosis/simulation/simulation.fixture.ts'
import { listWith, type PublishFlags, publishWith, removeWith } from './templates.ts'

const TOPOLOGY = 'topology.example.com/node'

let server: ServerFixture
let client: Client
let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-templates-'))
  server = await createServerFixture()
  client = server.clientOf('capacity-templates')
  const admin = server.client()
  await admin.create(csiDriverKind, { metadata: { name: 'd.example.com' }, spec: { storageCapacity: true } })
  await admin.create(storageClassKind, {
    metadata: { name: 'local' },
    provisioner: 'd.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  await admin.create(nodeKind, { metadata: { name: 'n1', labels: { [TOPOLOGY]: 'n1' } } })
  const drivers = [{ name: 'd.example.com', nodeID: 'n1', topologyKeys: [TOPOLOGY] }]
  await admin.create(csiNodeKind, { metadata: { name: 'n1' }, spec: { drivers } })
  await admin.create(csiStorageCapacityKind, {
    metadata: { namespace: 'default', name: 'of-n1' },
    storageClassName: 'local',
    nodeTopology: { matchLabels: { [TOPOLOGY]: 'n1' } },
    capacity: '10Gi',
  })
})
afterEach(async () => {
  await server.store.close()
  await rm(dir, { recursive: true })
})

const publish = (flags: Partial<PublishFlags>) =>
  publishWith(
    client,
    { namespace: 'kube-system', output: 'text', ...flags },
    { clock: server.clock, random: () => 0, signal: new AbortController().signal, env: {}, write() {} },
  )

const readTemplates = async () =>
  (await server.client().list(csiStorageCapacityKind, { labelSelector: 'capacity.stowage.dev/template' })).items.map(
    ({ metadata, nodeTopology, capacity, maximumVolumeSize }) => ({
      key: `${metadata.namespace}/${metadata.name}`,
      topology: nodeTopology?.matchLabels,
      capacity,
      ...(maximumVolumeSize ? { maximumVolumeSize } : {}),
    }),
  )

/** Writes a node group file with one capacity object, and returns its path. */
async function writeGroupFile(group: { capacity?: string; value?: string; className?: string; label?: string } = {}) {
  const { capacity = '50Gi', value = 'large', className = 'local', label = value } = group
  const path = join(dir, 'group.json')
  const items = [
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'large', labels: { [TOPOLOGY]: label } } },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIStorageCapacity',
      storageClassName: className,
      nodeTopology: { matchLabels: { [TOPOLOGY]: value } },
      capacity,
    },
  ]
  await writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  return path
}

describe('stowage capacity templates', () => {
  it('PLUS-17 publishes the capacity of a group modelled on an existing node, and prints its labels', async () => {
    expect(await publish({ group: 'workers', like: 'n1' })).toBe(
      `created workers: 10Gi of class local for nodes with ${TOPOLOGY}=workers\n` +
        `The node template of the autoscaler needs these labels:\n  ${TOPOLOGY}: workers\n`,
    )
    const template = { key: 'kube-system/template-workers-1', topology: { [TOPOLOGY]: 'workers' }, capacity: '10Gi' }
    expect(await readTemplates()).toEqual([template])
    expect(await publish({ group: 'workers', like: 'n1' })).toMatch(/^kept workers/)
  })

  it('PLUS-17 updates the capacity of a changed group, and replaces objects whose topology changed', async () => {
    await publish({ nodeGroup: await writeGroupFile() })
    await publish({ nodeGroup: await writeGroupFile({ capacity: '60Gi' }) })
    expect(await readTemplates()).toMatchObject([{ topology: { [TOPOLOGY]: 'large' }, capacity: '60Gi' }])
    const output = JSON.parse(await publish({ nodeGroup: await writeGroupFile({ value: 'larger' }), output: 'json' }))
    expect(output.changes.map(({ change }: { change: string }) => change)).toEqual(['create', 'delete'])
    expect(await readTemplates()).toMatchObject([{ topology: { [TOPOLOGY]: 'larger' }, capacity: '50Gi' }])
  })

  it('PLUS-17 changes nothing in a dry run', async () => {
    expect(await publish({ group: 'workers', like: 'n1', dryRun: true })).toMatch(/^would create workers/)
    expect(await readTemplates()).toEqual([])
  })

  it('PLUS-17 lists the objects of all groups, and removes those of one', async () => {
    await publish({ group: 'workers', like: 'n1' })
    await publish({ nodeGroup: await writeGroupFile() })
    expect(await listWith(client, { output: 'text' })).toBe(
      `large: 50Gi of class local for nodes with ${TOPOLOGY}=large\nworkers: 10Gi of class local for nodes with ${TOPOLOGY}=workers\n`,
    )
    expect(await removeWith(client, 'workers', { output: 'text', dryRun: true })).toMatch(/^would delete workers/)
    expect(await removeWith(client, 'workers', { output: 'text' })).toMatch(/^deleted workers/)
    expect((await readTemplates()).map(({ key }) => key)).toEqual(['kube-system/template-large-1'])
    expect((await server.client().list(csiStorageCapacityKind)).items).toHaveLength(2)
    await expect(removeWith(client, 'workers', { output: 'text' })).rejects.toThrow(
      'The group workers has no templates.',
    )
  })

  it("PLUS-17 makes the scheduler accept a pod on a node that has the template's labels", async () => {
    await publish({ group: 'workers', like: 'n1' })
    const signal = new AbortController().signal
    const snapshot = await readSnapshot({ client: server.client(), nowMs: server.clock.nowMs(), signal })
    const spec = { storageClassName: 'local', accessModes: ['ReadWriteOnce'] }
    const fitsOn = (labels: Record<string, string>, storage: string) => {
      const node = { metadata: { name: 'simulated', uid: 'u', resourceVersion: '1', labels } }
      const claim = aClaim('a', storage, spec)
      const csiNodes = snapshot.csiNodes.map((csiNode) => ({
        ...csiNode,
        metadata: { ...csiNode.metadata, name: 'simulated' },
      }))
      const cluster = createCluster({ ...snapshot, nodes: [node], csiNodes, claims: [claim] })
      return cluster.evaluate(aPod('p', ['a'])).message === undefined
    }
    expect(fitsOn({ [TOPOLOGY]: 'workers' }, '10Gi')).toBe(true)
    expect(fitsOn({ [TOPOLOGY]: 'workers' }, '11Gi')).toBe(false)
    expect(fitsOn({ [TOPOLOGY]: 'others' }, '1Gi')).toBe(false)
  })

  it.each([
    [{ className: 'locl' }, 'The class locl of the group large does not exist. Similar names: local.'],
    [
      { value: 'n1' },
      'also selects the existing node n1, for which the scheduler would use the capacity. Use a label value that no node has.',
    ],
    [{ label: 'other' }, 'does not select the Node large of the group: add the label to it.'],
  ])('PLUS-17 rejects the group %j', async (group, message) => {
    await expect(writeGroupFile(group).then((nodeGroup) => publish({ nodeGroup }))).rejects.toThrow(message)
    expect(await readTemplates()).toEqual([])
  })

  it('PLUS-17 rejects flags that name no group, an invalid group or a missing node', async () => {
    await expect(publish({ group: 'workers' })).rejects.toThrow(
      'Set --node-group FILE, or --group NAME and --like NODE.',
    )
    await expect(publish({ group: 'workers', like: 'n9' })).rejects.toThrow(
      'The node n9 does not exist. Similar names: n1.',
    )
    await expect(publish({ group: 'My group', like: 'n1' })).rejects.toThrow('--group "My group"')
  })
})
