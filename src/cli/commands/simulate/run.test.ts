import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { forbidden } from '../../../api/status-error.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import type { Client } from '../../../client/index.ts'
import { SNAPSHOT_KINDS, type SnapshotList } from '../../../diagnosis/index.ts'
import { aPod, aSnapshot, DRIVER, HOST } from '../../../diagnosis/simulation/simulation.fixture.ts'
import { type SimulateDeps, type SimulateFlags, simulateWith } from './run.ts'

let dir: string
let file: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-simulate-'))
  file = join(dir, 'deployment.yaml')
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'app', image: 'app' }] } }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas: 3, template },
  }
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [deployment, service] }))
})
afterAll(() => rm(dir, { recursive: true }))

/** A client that can only discover which kinds the server serves, and list all except those in `denied`. */
function readOnlyClient(denied: readonly SnapshotList[] = [], objects: Parameters<typeof aSnapshot>[1] = {}): Client {
  const snapshot = aSnapshot([{ name: 'n1', free: '10Gi' }], objects)
  const list = async ({ plural }: { readonly plural: string }) => {
    const name = Object.entries(SNAPSHOT_KINDS).find(([, kind]) => kind.plural === plural)![0] as SnapshotList
    if (denied.includes(name)) throw forbidden(SNAPSHOT_KINDS[name], '', 'no')
    return { items: snapshot[name], resourceVersion: '1' }
  }
  const serves = async () => true
  return new Proxy({ list, serves } as unknown as Client, {
    get(client, verb) {
      if (verb === 'list' || verb === 'serves') return client[verb]
      throw new Error(`the simulation calls ${String(verb)}`)
    },
  })
}

const simulateFile = (client: Client, flags: Partial<SimulateFlags> = {}, deps: Partial<SimulateDeps> = {}) =>
  simulateWith(
    client,
    { filename: [file], namespace: 'shop', output: 'text', ...flags },
    {
      clock: manualClock(),
      random: () => 0,
      signal: new AbortController().signal,
      env: {},
      hasColors: false,
      progressOutput: { write() {} },
      write() {},
      ...deps,
    },
  )

describe('a simulation through a client', () => {
  it('PLUS-2 sends only requests that list objects or discover served kinds', async () => {
    const { fits, placed, notes } = await simulateFile(readOnlyClient())
    expect(fits).toBe(true)
    expect(placed.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      'shop/web-0',
      'shop/web-1',
      'shop/web-2',
    ])
    expect(notes).toEqual(['Objects that the simulation ignores: Service/web.'])
  })

  it('PLUS-2 places the waiting pods of the cluster, and those of a removed node', async () => {
    const pods = [aPod('waits'), aPod('runs', [], { nodeName: 'n1' }), aPod('gone', [], { nodeName: 'n2' })]
    const nodes = aSnapshot([
      { name: 'n1', free: '1Gi' },
      { name: 'n2', free: '1Gi' },
    ]).nodes as object[]
    const flags = { pending: true, removeNode: ['n2'] }
    const { placed } = await simulateFile(readOnlyClient([], { pods, nodes }), { ...flags, filename: undefined })
    expect(placed.map(({ name, node }) => [name, node])).toEqual([
      ['waits', 'n1'],
      ['gone', 'n1'],
    ])
  })

  it('PLUS-2 adds classes with their capacity', async () => {
    const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '20Gi' } } }
    const claim = { metadata: { name: 'a' }, spec: { ...storage, storageClassName: 'large' } }
    const volumes = [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }]
    const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'app', image: 'app' }], volumes } }
    const storageClass = { metadata: { name: 'large' }, provisioner: DRIVER, volumeBindingMode: 'WaitForFirstConsumer' }
    const nodeTopology = { matchLabels: { [HOST]: 'n1' } }
    const capacity = { metadata: { name: 'c' }, storageClassName: 'large', nodeTopology, capacity: '30Gi' }
    const write = async (name: string, items: readonly object[]) => {
      const path = join(dir, name)
      await writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
      return path
    }
    const filename = [
      await write('pods.json', [
        { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim },
        { apiVersion: 'v1', kind: 'Pod', ...pod },
      ]),
    ]
    const setClass = [
      await write('class.json', [
        { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', ...storageClass },
        { apiVersion: 'storage.k8s.io/v1', kind: 'CSIStorageCapacity', ...capacity },
      ]),
    ]
    expect((await simulateFile(readOnlyClient(), { filename })).rejected).toMatchObject([
      { diagnosis: { children: [{ reason: 'StorageClassNotFound' }] } },
    ])
    const { fits, classes } = await simulateFile(readOnlyClient(), { filename, setClass })
    expect(fits).toBe(true)
    expect(classes.map(({ name, free }) => [name, free])).toEqual([
      ['large', '10Gi'],
      ['local', '0'],
    ])
  })

  it('SYS-12 shows the progress on a terminal, and clears it at the end', async () => {
    const texts: string[] = []
    const progressOutput = { write: (text: string) => void texts.push(text), columns: () => 100 }
    await simulateFile(readOnlyClient(), { like: 'n1' }, { progressOutput })
    expect(texts).toEqual([expect.stringContaining('Placing pods ['), '\r\u001b[2K'])
    expect(texts[0]).toContain('1 of 3 pods')
  })

  it('PLUS-2 names the missing permissions without which the placement would be wrong', async () => {
    await expect(simulateFile(readOnlyClient(['pods', 'nodes']))).rejects.toThrow(
      'The simulation needs permission to list pods in all namespaces, list nodes.',
    )
  })

  it('PLUS-2 notes the limits that it could not check without permission', async () => {
    const { notes } = await simulateFile(readOnlyClient(['capacities', 'quotas']))
    expect(notes.slice(0, 2)).toEqual([
      'Without permission to list csistoragecapacities.storage.k8s.io in all namespaces, the limits of capacity reports are not checked.',
      'Without permission to list resourcequotas in all namespaces, the limits of quotas are not checked.',
    ])
  })
})
