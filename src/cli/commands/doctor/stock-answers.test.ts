// Runs the checks on a stock API server's responses: other forms of empty values, kinds that are not served, 403 and 429.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import { asStock, type StockOptions } from '../../../client/stock-server.fixture.ts'
import { CHECKS } from './checks/index.ts'
import { createCluster } from './cluster.ts'
import { aContext, createDriverFacts } from './doctor.fixture.ts'
import { runChecks } from './report.ts'

const DRIVER = 'disks.example.com'
const STORAGE = '/apis/storage.k8s.io/v1'
const FORMS = [0, 1, 2, 3, 4, 5]

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture()
  await addBrokenObjects()
})
afterEach(() => server.store.close())

/** Creates objects that cause findings in most checks. */
async function addBrokenObjects(): Promise<void> {
  const post = async (path: string, body: object) => {
    const { status, json } = await server.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
  }
  await post(`${STORAGE}/csidrivers`, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
  await post(`${STORAGE}/storageclasses`, {
    metadata: { name: 'fast' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  })
  for (const [name, labels] of [
    ['node-1', { 'example.com/zone': 'a' }],
    ['node-2', {}],
  ] as const) {
    await post('/api/v1/nodes', { metadata: { name, labels } })
    const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: ['example.com/zone'] }]
    await post(`${STORAGE}/csinodes`, { metadata: { name }, spec: { drivers } })
  }
  await post(`${STORAGE}/namespaces/default/csistoragecapacities`, {
    metadata: { name: 'orphan', labels: { 'csi.storage.k8s.io/drivername': DRIVER } },
    storageClassName: 'deleted-class',
    nodeTopology: { matchLabels: { 'example.com/zone': 'a' } },
    capacity: '1Gi',
  })
  await post('/api/v1/persistentvolumes', {
    metadata: { name: 'held', finalizers: ['external-attacher/gone-example-com'] },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'gone.example.com', volumeHandle: 'v1' },
    },
  })
  const renewTime = new Date(server.clock.nowMs()).toISOString().replace('Z', '000Z')
  await post('/apis/coordination.k8s.io/v1/namespaces/default/leases', {
    metadata: { name: 'external-attacher-leader-disks-example-com' },
    spec: { holderIdentity: 'attacher-0', leaseDurationSeconds: 15, renewTime, acquireTime: renewTime },
  })
}

const socket = {
  address: '/run/csi/driver.sock',
  facts: createDriverFacts({ controller: new Set(['CREATE_DELETE_VOLUME', 'GET_CAPACITY']) }),
}

/** Returns the findings of all checks as lines. */
async function examine(client: Client): Promise<string[]> {
  const cluster = createCluster(client, new AbortController().signal)
  const reports = await runChecks(CHECKS, {
    ...aContext({ clock: server.clock, client, driver: DRIVER, socket }),
    cluster,
  })
  return reports.flatMap(({ id, findings }) =>
    findings.map(({ status, object, message }) => `${id} ${status} ${object ?? ''}: ${message}`),
  )
}

const examineStock = (options: StockOptions = {}) => examine(asStock(server.client(), options))

describe('stowage doctor on the responses of a stock API server', () => {
  it.each(FORMS)('PLUS-9 reports the same findings as on a Stowage server (form %i of empty values)', async (form) => {
    const findings = await examineStock({ random: () => form / FORMS.length })
    expect(findings).toEqual(await examine(server.client()))
    for (const text of ['node-2', 'orphan', 'held', 'external-attacher-leader-disks-example-com', 'EXPAND_VOLUME']) {
      expect(findings.join('\n')).toContain(text)
    }
  })

  it('PLUS-9 reports the kinds that the server does not serve, and runs the other checks', async () => {
    const findings = await examineStock({ serves: ({ plural }) => plural !== 'csistoragecapacities' })
    expect(findings.filter((line) => line.startsWith('apis ') && !line.startsWith('apis ok'))).not.toEqual([])
    expect(findings.join('\n')).toContain('node-2')
    expect(findings.join('\n')).not.toContain('orphan')
  })

  it.each(['nodes', 'csinodes', 'storageclasses', 'leases', 'csidrivers', 'persistentvolumes'])(
    'PLUS-9 marks checks that need %s as unknown without permission to list them',
    async (denied) => {
      const findings = await examineStock({ allows: ({ kind }) => kind.plural !== denied })
      const isAbout = (line: string) => line.includes(' unknown ') && line.includes(denied)
      expect(findings.filter(isAbout)).not.toEqual([])
      expect(findings.some((line) => !line.includes(' unknown '))).toBe(true)
    },
  )

  it('PLUS-9 marks every check that reads objects as unknown if the server rejects all requests', async () => {
    const findings = await examineStock({ rejects: () => true })
    for (const id of ['topology', 'finalizers', 'leases', 'capacity-objects']) {
      const lines = findings.filter((line) => line.startsWith(`${id} `))
      expect(lines, id).not.toEqual([])
      expect(
        lines.every((line) => line.includes(' unknown ')),
        id,
      ).toBe(true)
    }
  })
})
