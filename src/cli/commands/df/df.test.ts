// Runs `stowage df` against an API server on a port, with the objects of a small cluster and the metrics of its nodes. One
// test compares the output with docs/how-to/space.md.
import { beforeEach, describe, expect, it } from 'vitest'
import { ADMIN, type Json, type ServerFixtureOptions } from '../../../apiserver/server.fixture.ts'
import { systemClock } from '../../../base/clock.ts'
import { createAgentMetrics } from '../../../nodeagent/index.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'
import { expectPage } from '../../space/space-page.fixture.ts'

const STORAGE = '/apis/storage.k8s.io/v1'
const DRIVER = 'local.csi.stowage.dev'
const TOPOLOGY_KEY = `${DRIVER}/node`
const GIB = 2 ** 30
const MIB = 2 ** 20

/** A bearer token authenticates the user with that name; other requests are those of an administrator. */
const SERVER: ServerFixtureOptions = {
  usesRbac: true,
  authenticator: {
    authenticate({ authorization }) {
      const token = /^Bearer (\w+)$/.exec(authorization ?? '')?.[1]
      const user = token ? { name: token, groups: ['system:authenticated'] } : ADMIN
      return { is: 'authenticated', user }
    },
    authenticateToken: () => undefined,
  },
}

let program: Awaited<ReturnType<typeof startProgramFixture>>

const post = async (path: string, body: object): Promise<Json> => {
  const { status, json } = await program.api.post(path, body)
  expect(status, JSON.stringify(json)).toBe(201)
  return json
}

interface StagedVolume {
  readonly namespace: string
  readonly name: string
  readonly size: string
  readonly node: string
  readonly volumeMode?: 'Block'
  readonly capacity?: Readonly<Record<string, string>>
}

/** Creates a claim that is bound to a volume on a node. */
async function createBoundClaim({
  namespace,
  name,
  size,
  node,
  volumeMode,
  capacity = {},
}: StagedVolume): Promise<void> {
  const common = { accessModes: ['ReadWriteOnce'], storageClassName: 'local', ...(volumeMode ? { volumeMode } : {}) }
  const volumeName = `pv-${name}`
  const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
  const { metadata } = await post(claims, {
    metadata: { name },
    spec: { ...common, resources: { requests: { storage: size } }, volumeName },
  })
  const requirement = { key: TOPOLOGY_KEY, operator: 'In', values: [node] }
  await post('/api/v1/persistentvolumes', {
    metadata: { name: volumeName },
    spec: {
      ...common,
      capacity: { storage: size, ...capacity },
      csi: { driver: DRIVER, volumeHandle: name },
      claimRef: { namespace, name, uid: metadata.uid },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [requirement] }] } },
    },
  })
  const status = { phase: 'Bound', capacity: { storage: size } }
  expect((await program.api.patch(`${claims}/${name}/status`, { status }, 'merge')).status).toBe(200)
}

async function runPod(namespace: string, claimName: string, node: string): Promise<void> {
  await post(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: `uses-${claimName}` },
    spec: {
      nodeName: node,
      containers: [{ name: 'app', image: 'app' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
  })
}

/**
 * Stages two nodes with a pool each, and five claims: two measured, one that no pod uses, one on a raw block device, one unbound.
 */
async function stage(): Promise<void> {
  for (const name of ['shop', 'bank']) await post('/api/v1/namespaces', { metadata: { name } })
  for (const name of ['node-1', 'node-2'])
    await post('/api/v1/nodes', { metadata: { name, labels: { [TOPOLOGY_KEY]: name } } })
  await post(`${STORAGE}/storageclasses`, { metadata: { name: 'local' }, provisioner: DRIVER })
  for (const [node, capacity] of [
    ['node-1', '5Gi'],
    ['node-2', '9Gi'],
  ] as const) {
    await post(`${STORAGE}/namespaces/kube-system/csistoragecapacities`, {
      metadata: { name: `capacity-${node}` },
      storageClassName: 'local',
      nodeTopology: { matchLabels: { [TOPOLOGY_KEY]: node } },
      capacity,
    })
  }
  await createBoundClaim({
    namespace: 'shop',
    name: 'orders',
    size: '2Gi',
    node: 'node-1',
    capacity: { iops: '500', throughput: '50Mi' },
  })
  await createBoundClaim({ namespace: 'shop', name: 'carts', size: '1Gi', node: 'node-1' })
  await createBoundClaim({ namespace: 'shop', name: 'archive', size: '1Gi', node: 'node-2' })
  await createBoundClaim({ namespace: 'bank', name: 'ledger', size: '1Gi', node: 'node-2', volumeMode: 'Block' })
  await post('/api/v1/namespaces/bank/persistentvolumeclaims', {
    metadata: { name: 'pending' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources: { requests: { storage: '4Gi' } } },
  })
  await runPod('shop', 'orders', 'node-1')
  await runPod('shop', 'carts', 'node-1')
  await runPod('bank', 'ledger', 'node-2')
  const metrics = createAgentMetrics(program.api.server.metrics.registry, systemClock())
  const { setVolume } = metrics
  setVolume(
    { namespace: 'shop', persistentvolumeclaim: 'orders' },
    {
      ...{ capacityBytes: 2 * GIB, usedBytes: 1.9 * GIB, availableBytes: 0.1 * GIB, inodes: 1_000, inodesUsed: 120 },
      ...{
        growthBytesPerDay: 30 * MIB,
        read: { iopsUsed: 20, throughputUsed: MIB },
        write: { iopsUsed: 15, throughputUsed: 0.5 * MIB },
      },
    },
  )
  setVolume(
    { namespace: 'shop', persistentvolumeclaim: 'carts' },
    { capacityBytes: GIB, usedBytes: 256 * MIB, availableBytes: 768 * MIB, inodes: 1_000, inodesUsed: 10 },
  )
}

const runDf = (...flags: string[]) => runDfUntil(new AbortController().signal, ...flags)

async function runDfUntil(
  signal: AbortSignal,
  ...flags: string[]
): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const config = flags.includes('--kubeconfig') ? [] : ['--kubeconfig', program.kubeconfig]
  const code = await runCommandLine(['node', 'stowage', 'df', ...flags, ...config], {
    clock: systemClock(),
    random: () => 0.5,
    signal,
    write: (text) => {
      out += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const readItems = async (...flags: string[]): Promise<Json[]> =>
  JSON.parse((await runDf(...flags, '-o', 'json')).out).items

describe('stowage df', () => {
  beforeEach(async () => {
    program = await startProgramFixture(SERVER)
    await stage()
  })

  it('PLUS-16 prints the output that the guide shows', async () => {
    await expectPage('df', async (flags) => (await runDf(...flags)).out)
  })

  it('PLUS-16 shows requests, usage, IO with limits and growth, and why usage is unknown', async () => {
    const items = await readItems('-A')
    expect(items.map(({ namespace, claim }) => `${namespace}/${claim}`)).toEqual([
      ...['shop/orders', 'shop/carts', 'bank/ledger', 'bank/pending', 'shop/archive'],
    ])
    expect(items[0]).toEqual({
      ...{ namespace: 'shop', claim: 'orders', volume: 'pv-orders', class: 'local', driver: DRIVER, node: 'node-1' },
      ...{ pool: `${TOPOLOGY_KEY}=node-1`, requestBytes: 2 * GIB, capacityBytes: 2 * GIB },
      ...{ usedBytes: 1.9 * GIB, freeBytes: 0.1 * GIB, inodes: 1_000, inodesUsed: 120 },
      ...{ iops: 35, iopsLimit: 500, throughputBytes: 1.5 * MIB, throughputLimitBytes: 50 * MIB },
      growthBytesPerDay: 30 * MIB,
    })
    const reasons = Object.fromEntries(items.map(({ claim, unknownReason }) => [claim, unknownReason]))
    expect(reasons).toEqual({
      orders: undefined,
      carts: undefined,
      ledger: 'a raw block device has no file system',
      pending: 'the claim has no volume yet',
      archive: 'no pod has the volume mounted',
    })
    expect(items[4]).not.toHaveProperty('usedBytes')
    const names = (await readItems('-n', 'shop', '--sort', 'free')).map(({ claim }) => claim)
    expect(names).toEqual(['orders', 'carts', 'archive'])
  })

  it('PLUS-16 shows no volume for an unbound claim that names one', async () => {
    await post('/api/v1/namespaces/bank/persistentvolumeclaims', {
      metadata: { name: 'named' },
      spec: { accessModes: ['ReadWriteOnce'], volumeName: 'none', resources: { requests: { storage: '1Gi' } } },
    })
    const named = (await readItems('-n', 'bank')).find(({ claim }) => claim === 'named')
    expect(named).toMatchObject({ unknownReason: 'the claim has no volume yet' })
    expect(named).not.toHaveProperty('volume')
  })

  it('PLUS-16 adds up amounts by node, and counts volumes without a claim', async () => {
    await post('/api/v1/persistentvolumes', {
      metadata: { name: 'retained' },
      spec: {
        capacity: { storage: '3Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        hostPath: { path: '/a' },
      },
    })
    expect(await readItems('-A', '--by', 'node', '--sort', 'name')).toMatchObject([
      { name: 'node-1', volumes: 2, measuredVolumes: 2, capacityBytes: 3 * GIB, availableBytes: 5 * GIB },
      { name: 'node-2', volumes: 2, measuredVolumes: 0, capacityBytes: 2 * GIB, availableBytes: 9 * GIB },
      { volumes: 1, measuredVolumes: 0, requestBytes: 4 * GIB, capacityBytes: 3 * GIB },
    ])
  })

  it('PLUS-12 prints what automatic growth would do, and changes nothing', async () => {
    const nothing = await runDf('-A', '--would-grow')
    expect(nothing.out).toBe('Neither a claim nor the class of a claim has the annotation stowage.dev/auto-grow.\n')
    const annotate = async (path: string, policy: string) => {
      const metadata = { annotations: { 'stowage.dev/auto-grow': policy } }
      expect((await program.api.patch(path, { metadata }, 'merge')).status).toBe(200)
    }
    const claims = '/api/v1/namespaces/shop/persistentvolumeclaims'
    const classPath = `${STORAGE}/storageclasses/local`
    expect((await program.api.patch(classPath, { allowVolumeExpansion: true }, 'merge')).status).toBe(200)
    await annotate(`${claims}/orders`, 'step=1Gi,max=10Gi')
    await annotate(`${claims}/carts`, 'max=10Gi')
    await annotate(`${claims}/archive`, 'max=huge')
    const { code, out } = await runDf('-n', 'shop', '--would-grow')
    expect(code).toBe(0)
    expect(out).toBe(
      'NAMESPACE  CLAIM    CAPACITY      USE  WOULD GROW TO  WHY\n' +
        'shop       archive       1Gi  unknown  invalid        The annotation stowage.dev/auto-grow of the claim is invalid: max "huge" is not a size such as 100Gi. The claim does not grow automatically.\n' +
        'shop       carts         1Gi      25%  nothing        25% used, below the threshold of 80%\n' +
        'shop       orders        2Gi      95%  3Gi            95% of 2Gi used: growing from 2Gi to 3Gi\n',
    )
    await annotate(`${claims}/orders`, 'step=7Gi,max=10Gi')
    const { items } = JSON.parse((await runDf('-n', 'shop', '--would-grow', '-o', 'json')).out)
    expect(items[2]).toMatchObject({ action: 'stop', message: expect.stringContaining('only 5Gi is free') })
    const { json } = await program.api.get(`${claims}/orders`)
    expect(json.spec.resources.requests.storage).toBe('2Gi')
  })

  it('PLUS-16 names the missing rules, and shows the amounts that are known without them', async () => {
    const rules = [{ apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['list'] }]
    const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop'
    await post(`${RBAC}/roles`, { metadata: { name: 'claims' }, rules })
    await post(`${RBAC}/rolebindings`, {
      metadata: { name: 'claims' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'claims' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
    const kubeconfig = await program.writeKubeconfig('ann')
    const run = (...flags: string[]) => runDf(...flags, '--kubeconfig', kubeconfig)
    await program.api.waitUntil(async () => (await run('-n', 'shop')).code === 0, 'the role to be in effect')
    const { out } = await run('-n', 'shop')
    expect(out).toMatch(/^shop +orders +local +- +2Gi +2Gi +unknown +unknown +unknown/m)
    expect(out).toContain('  3 claims: you need permission to get the path /metrics\n')
    expect(out).toContain(
      'To show more, you need permission to:\n  list pods in the namespace shop\n  list persistentvolumes\n',
    )
    expect(await run('-A')).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'you need permission to list persistentvolumeclaims in all namespaces; choose a namespace',
      ),
    })
  })

  it('SYS-12 rejects an unknown group and conflicting flags, exits with 130 if it is interrupted, and fails if no server responds', async () => {
    expect(await runDf('--by', 'disk')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Allowed choices are claim, class'),
    })
    expect(await runDf('-A', '-n', 'shop')).toMatchObject({ code: 2, err: expect.stringContaining('not both') })
    expect(await runDfUntil(AbortSignal.abort(), '-A')).toEqual({ code: 130, out: '', err: '' })
    await program.stopServer()
    expect(await runDf('-A')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^stowage: .*ECONNREFUSED/),
    })
  })
})
