// Runs `stowage doctor` against API servers on a port: healthy and broken clusters, and servers that cannot be used.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { issueCertificate } from '../../../apiserver/security/certificate.ts'
import { ADMIN, type Json, type ServerFixtureOptions } from '../../../apiserver/server.fixture.ts'
import { systemClock } from '../../../base/clock.ts'
import { microTimestamp } from '../../../base/timestamps.ts'
import type { FakeSettings } from '../../../csi/fake/index.ts'
import { buildKubeconfig } from '../../../processes/kubeconfig.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'
import { printRoles } from '../rbac/print.ts'
import type { Finding } from './check.ts'

const DRIVER = 'fake.stowage.example'
const ACCOUNT = 'system:serviceaccount:csi:driver'
const STORAGE = '/apis/storage.k8s.io/v1'
const DAY_MS = 86_400_000
const PAGE = new URL('../../../../docs/how-to/doctor.md', import.meta.url)

/** A server with RBAC. The bearer token `viewer` authenticates the user viewer; other requests are those of an administrator. */
const SERVER: ServerFixtureOptions = {
  usesRbac: true,
  authenticator: {
    authenticate({ authorization }) {
      const token = /^Bearer (viewer)$/.exec(authorization ?? '')?.[1]
      const user = token ? { name: token, groups: ['stowage:viewers', 'system:authenticated'] } : ADMIN
      return { is: 'authenticated', user }
    },
    authenticateToken: () => undefined,
  },
}

async function startCluster(driver: Partial<FakeSettings> = {}) {
  const program = await startProgramFixture(SERVER)
  const { endpoint } = await program.serveFakeDriver(driver)
  const post = async (path: string, body: object): Promise<void> => {
    const { status, json } = await program.api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
  }
  const createNode = async (name: string, labels: object) => {
    await post('/api/v1/nodes', { metadata: { name, labels } })
    const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: ['example.com/zone'] }]
    await post(`${STORAGE}/csinodes`, { metadata: { name }, spec: { drivers } })
  }
  await post('/api/v1/namespaces', { metadata: { name: 'csi' } })
  await post(`${STORAGE}/csidrivers`, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
  await post(`${STORAGE}/storageclasses`, {
    metadata: { name: 'fast' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  })
  await createNode('node-1', { 'example.com/zone': 'a' })
  return {
    ...program,
    endpoint,
    post,
    createNode,
    /** Binds the roles of a sidecar with these features to the driver's account. */
    async grant(features?: readonly string[]) {
      const roles = printRoles({ component: 'sidecar', namespace: 'csi', serviceAccount: 'driver', features })
      for (const document of parseAllDocuments(roles)) {
        const { apiVersion, kind, metadata, ...object }: Json = document.toJS()
        const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
        const namespace = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
        await post(`${prefix}${namespace}/${kind.toLowerCase()}s`, { apiVersion, kind, metadata, ...object })
      }
    },
    holdLease: (name: string, holderIdentity: string) =>
      post('/apis/coordination.k8s.io/v1/namespaces/csi/leases', {
        metadata: { name },
        spec: { holderIdentity, leaseDurationSeconds: 3_600, renewTime: microTimestamp(systemClock().nowMs()) },
      }),
    createCapacity: (name: string, storageClassName: string) =>
      post(`${STORAGE}/namespaces/csi/csistoragecapacities`, {
        metadata: { name, labels: { 'csi.storage.k8s.io/drivername': DRIVER } },
        storageClassName,
        nodeTopology: { matchLabels: { 'example.com/zone': 'a' } },
        capacity: '1Gi',
      }),
    doctor: (...flags: string[]) => runDoctor('--kubeconfig', program.kubeconfig, ...flags),
  }
}

interface DoctorResult {
  readonly code: number
  readonly out: string
  readonly err: string
  /** The findings with the id of their check, except those that are ok. */
  problems(): (Finding & { readonly check: string })[]
}

async function runDoctor(...flags: string[]): Promise<DoctorResult> {
  let output = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', 'doctor', '--data-dir', '/nonexistent-stowage', ...flags], {
    clock: systemClock(),
    random: () => 0.5,
    signal: new AbortController().signal,
    write: (text) => {
      output += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return {
    code,
    out: output,
    err,
    problems: () =>
      (JSON.parse(output).checks as { id: string; findings: Finding[] }[]).flatMap(({ id, findings }) =>
        findings.filter(({ status }) => status !== 'ok').map((finding) => ({ check: id, ...finding })),
      ),
  }
}

const NO_COMPONENT_FINDING = { check: 'rights', status: 'unknown' }

function issueSelfSigned(key: KeyObject, use: 'server' | 'client', notAfterMs: number): string {
  const name = { commonName: 'expired' }
  return issueCertificate({
    subject: name,
    issuer: name,
    key,
    issuerKey: key,
    use,
    ...(use === 'server' ? { hosts: ['127.0.0.1'] } : {}),
    serialNumber: Uint8Array.of(7),
    notBeforeMs: notAfterMs - DAY_MS,
    notAfterMs,
  })
}

const generateKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pemOf = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }) as string

describe('stowage doctor', () => {
  it('PLUS-9 finds no problem in a healthy cluster, and exits with 0', async () => {
    const cluster = await startCluster()
    await cluster.grant()
    await cluster.createCapacity('used', 'fast')
    const flags = ['--csi-address', cluster.endpoint, '--component', 'sidecar', '--as', ACCOUNT, '-o', 'json']
    const result = await cluster.doctor(...flags)
    expect(result.problems()).toEqual([])
    expect(result.code).toBe(0)
    expect(JSON.parse(result.out)).toMatchObject({ driver: DRIVER, version: expect.stringMatching(/^v1\./) })
  })

  it('PLUS-9 runs with the permissions of a viewer, and reports those of other users as unknown', async () => {
    const cluster = await startCluster()
    const kubeconfig = await cluster.writeKubeconfig('viewer')
    const flags = ['--csi-address', cluster.endpoint, '--component', 'sidecar', '--as', ACCOUNT, '-o', 'json']
    const result = await runDoctor('--kubeconfig', kubeconfig, ...flags)
    expect(result.problems()).toEqual([
      {
        check: 'rights',
        status: 'unknown',
        message: expect.stringContaining('cannot create resource "subjectaccessreviews"'),
        remedy: 'Run the command as a user with this permission.',
      },
    ])
    expect(result.code).toBe(0)
  })

  it('PLUS-9 reports the missing permissions of an account, and the command that grants them', async () => {
    const cluster = await startCluster()
    await cluster.grant(['provisioner', 'resizer', 'attacher', 'leader-election', 'topology', 'transactions'])
    const features = 'leader-election,topology,transactions,attributes'
    const result = await cluster.doctor(
      ...['--component', 'sidecar', '--features', features, '--as', ACCOUNT, '-o', 'json'],
    )
    const remedy = `stowage rbac print --component sidecar --features ${features} --namespace csi --service-account driver | kubectl apply -f -`
    const consequence = 'the feature attributes is out of service.'
    expect(result.problems().filter(({ check }) => check === 'rights')).toEqual(
      [
        `${ACCOUNT} cannot get, list, watch volumeattributesclasses.storage.k8s.io: ${consequence}`,
        `${ACCOUNT} cannot get storageclasses.storage.k8s.io: ${consequence}`,
      ].map((message) => ({ check: 'rights', status: 'warning', message, remedy })),
    )
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports a class that allows expansion on a driver that cannot expand', async () => {
    const cluster = await startCluster({
      controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME', 'GET_CAPACITY'],
      node: [],
    })
    const result = await cluster.doctor('--csi-address', cluster.endpoint, '-o', 'json')
    expect(result.problems()).toEqual([
      expect.objectContaining(NO_COMPONENT_FINDING),
      {
        check: 'driver-capabilities',
        status: 'error',
        object: 'StorageClass fast',
        message: `It allows the expansion of volumes, but the driver ${DRIVER} does not report EXPAND_VOLUME.`,
        remedy: `kubectl patch storageclass fast -p '{"allowVolumeExpansion":false}'`,
      },
    ])
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports a node without the label of a topology key', async () => {
    const cluster = await startCluster()
    await cluster.createNode('node-2', {})
    const result = await cluster.doctor('--csi-address', cluster.endpoint, '-o', 'json')
    expect(result.problems()).toEqual([
      expect.objectContaining(NO_COMPONENT_FINDING),
      expect.objectContaining({ check: 'topology', status: 'error', object: 'Node node-2' }),
    ])
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports the lease of an upstream sidecar with its holder', async () => {
    const cluster = await startCluster()
    await cluster.holdLease('external-resizer-fake-stowage-example', 'csi-resizer-0')
    const result = await cluster.doctor('--csi-address', cluster.endpoint, '-o', 'json')
    expect(result.problems()).toEqual([
      expect.objectContaining(NO_COMPONENT_FINDING),
      expect.objectContaining({
        check: 'leases',
        status: 'warning',
        object: 'Lease csi/external-resizer-fake-stowage-example',
        message: expect.stringContaining('It is held by csi-resizer-0'),
      }),
    ])
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports orphaned capacity objects, and finalizers of a driver that is not installed', async () => {
    const cluster = await startCluster()
    await cluster.createCapacity('left', 'deleted-class')
    const attachment = `${STORAGE}/volumeattachments/csi-1`
    await cluster.post(`${STORAGE}/volumeattachments`, {
      metadata: { name: 'csi-1', finalizers: ['external-attacher/removed-example-com'] },
      spec: { attacher: 'removed.example.com', nodeName: 'node-1', source: { persistentVolumeName: 'pv-1' } },
    })
    await cluster.api.delete(attachment)
    const result = await cluster.doctor('-o', 'json')
    expect(result.problems()).toEqual([
      expect.objectContaining(NO_COMPONENT_FINDING),
      expect.objectContaining({ check: 'driver-capabilities', status: 'unknown' }),
      {
        check: 'capacity-objects',
        status: 'warning',
        object: 'CSIStorageCapacity csi/left',
        message: 'It is orphaned: the StorageClass deleted-class does not exist.',
        remedy: 'kubectl delete csistoragecapacity left --namespace csi',
      },
      expect.objectContaining({
        check: 'finalizers',
        status: 'error',
        object: 'VolumeAttachment csi-1',
        message: expect.stringContaining('the driver removed.example.com is not installed'),
      }),
    ])
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports an expired client certificate', async () => {
    const cluster = await startCluster()
    const { privateKey } = generateKeys()
    const cert = issueSelfSigned(privateKey, 'client', systemClock().nowMs() - DAY_MS)
    const kubeconfig = join(cluster.dir, 'expired.kubeconfig')
    const { server, ca } = await readConnection(cluster.kubeconfig)
    const credential = { user: 'late', cert, key: pemOf(privateKey) }
    await writeFile(kubeconfig, buildKubeconfig({ server, caCert: ca, credential }))
    const result = await runDoctor('--kubeconfig', kubeconfig, '-o', 'json')
    expect(result.problems().filter(({ status }) => status === 'error')).toEqual([
      {
        check: 'certificates',
        status: 'error',
        message: expect.stringMatching(/^The client certificate expired at \S+\.$/),
        remedy: expect.stringContaining('stowage kubeconfig'),
      },
    ])
    expect(result.code).toBe(1)
  })

  it('PLUS-9 reports an expired server certificate, which prevents all requests', async () => {
    const { privateKey } = generateKeys()
    const cert = issueSelfSigned(privateKey, 'server', systemClock().nowMs() - DAY_MS)
    const server = createServer({ key: pemOf(privateKey), cert }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    const { dir } = await startProgramFixture()
    const kubeconfig = join(dir, 'expired-server.kubeconfig')
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const credential = { user: 'admin', cert, key: pemOf(privateKey) }
    await writeFile(kubeconfig, buildKubeconfig({ server: url, caCert: cert, credential }))
    const result = await runDoctor('--kubeconfig', kubeconfig, '-o', 'json')
    expect(result.problems().filter(({ status }) => status === 'error')[0]).toMatchObject({
      check: 'certificates',
      message: expect.stringMatching(/^The certificate of the API server expired at /),
    })
    expect(result.problems()[0]).toMatchObject({ check: 'apis', status: 'unknown' })
    expect(result.code).toBe(1)
  })

  it('PLUS-9 exits with 2 if the server cannot be reached or the flags are invalid', async () => {
    const { dir, kubeconfig } = await startProgramFixture()
    const text = await readFile(kubeconfig, 'utf8')
    const unreachableConfig = join(dir, 'unreachable.kubeconfig')
    await writeFile(unreachableConfig, text.replace(/https:\/\/127\.0\.0\.1:\d+/, 'https://127.0.0.1:1'))
    expect(await runDoctor('--kubeconfig', unreachableConfig)).toMatchObject({
      code: 2,
      out: '',
      err: 'stowage: cannot reach https://127.0.0.1:1: ECONNREFUSED (no server listens there)\n',
    })
    const flags = ['--kubeconfig', kubeconfig, '--component', 'resizer', '--features', 'topology']
    expect(await runDoctor(...flags)).toMatchObject({
      code: 2,
      err: expect.stringContaining('unknown feature "topology"'),
    })
    expect(await runDoctor('--kubeconfig', kubeconfig, '--as', ACCOUNT)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--as and --features require --component'),
    })
  })

  it('PLUS-9 prints the text of docs/how-to/doctor.md', async () => {
    const cluster = await startCluster({
      controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME', 'GET_CAPACITY'],
      node: [],
    })
    const features = ['provisioner', 'resizer', 'attacher', 'leader-election', 'topology', 'transactions']
    await cluster.grant(features)
    await cluster.createNode('node-2', {})
    await cluster.holdLease('external-resizer-fake-stowage-example', 'csi-resizer-0')
    await cluster.createCapacity('csisc-vj7q2', 'deleted-class')
    const flags = ['--component', 'sidecar', '--features', 'leader-election,topology,transactions,attributes']
    const { out: output, code } = await cluster.doctor('--csi-address', cluster.endpoint, ...flags, '--as', ACCOUNT)
    const text = output
      .replace(/https:\/\/127\.0\.0\.1:\d+/g, 'https://10.0.0.1:6443')
      .replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, '2027-11-16T21:45:00Z')
      .replace(/v1\.\d+\.0\+stowage-\S+/g, 'v1.36.0')
      .replaceAll(DRIVER, 'disks.example.com')
      .replaceAll('fake-stowage-example', 'disks-example-com')
    const page = await readFile(PAGE, 'utf8')
    const [, example] = /```console\n\$ stowage doctor [^\n]*\\\n[^\n]*\n([\s\S]*?)```/.exec(page) ?? []
    expect(example).toBe(text)
    expect(code).toBe(1)
  })
})

async function readConnection(kubeconfig: string): Promise<{ server: string; ca: string }> {
  const text = await readFile(kubeconfig, 'utf8')
  const [, server = ''] = /server: "([^"]+)"/.exec(text) ?? []
  const [, ca = ''] = /certificate-authority-data: (\S+)/.exec(text) ?? []
  return { server, ca: Buffer.from(ca, 'base64').toString('utf8') }
}
