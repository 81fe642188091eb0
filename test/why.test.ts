// Creates objects that are not ready, for common causes, on `stowage up`, and checks the report of `stowage why` about each: the
// JSON here, and the text in docs/how-to/why.md. WHY_PAGE=print prints the text for the page.
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../src/base/clock.ts'
import { completionScript } from '../src/cli/commands/completion/script.ts'
import { runCommandLine } from '../src/cli/run.ts'
import type { Diagnosis } from '../src/diagnosis/index.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const PAGE = new URL('../docs/how-to/why.md', import.meta.url)
const CORE = '/api/v1/namespaces/default'
const SHOP = '/api/v1/namespaces/shop'
const PROGRAM = fileURLToPath(new URL('../bin/stowage', import.meta.url))
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const DRIVER = 'local.csi.stowage.dev'

interface Ref {
  readonly kind: string
  readonly name: string
}

let dir: string
let leftovers: HostLeftovers
let server: RunningServer

const post = async (path: string, body: object) => {
  const { status, text } = await server.call('POST', path, body)
  expect(status, text).toBe(201)
}
const patch = async (path: string, body: object) => {
  const { status, text } = await server.call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' })
  expect(status, text).toBe(200)
}
const createClaim = (name: string, storage: string, spec: object = {}, { prefix = CORE, metadata = {} } = {}) =>
  post(`${prefix}/persistentvolumeclaims`, {
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources: { requests: { storage } }, ...spec },
  })
const createPod = (name: string, volumes: readonly object[], spec: object = {}, prefix = CORE) =>
  post(`${prefix}/pods`, {
    metadata: { name },
    spec: {
      containers: [{ name: 'app', image: 'busybox', command: ['sleep', '3600'] }],
      volumes: volumes.map((volume, index) => ({ name: `data-${index}`, ...volume })),
      terminationGracePeriodSeconds: 1,
      ...spec,
    },
  })
const claimVolume = (claimName: string) => ({ persistentVolumeClaim: { claimName } })
const createClass = (name: string, provisioner: string, fields: object = {}) =>
  post(CLASSES, { metadata: { name }, provisioner, ...fields })

/** Creates an object for each cause, and what it needs. The server works on them while the tests run. */
async function createCauses(): Promise<void> {
  await createClaim('growing', '300Mi')
  await createPod('uses-growing', [claimVolume('growing')])
  await createClaim('unused', '300Mi')
  await createClaim('misspelt', '300Mi', { storageClassName: 'locl' })
  await createClaim('large', '20Gi')
  await createPod('analytics', [claimVolume('large')])
  await createPod('typo', [claimVolume('larg')])
  await createPod('picky', [claimVolume('unused')], { nodeSelector: { disk: 'fast' } })
  await createClass('silent', 'silent.example.com')
  await createClaim('orders', '300Mi', { storageClassName: 'silent' })
  await createClass('wrong', DRIVER, {
    parameters: { 'no-such-parameter': '1' },
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  await createClaim('invalid', '300Mi', { storageClassName: 'wrong' })
  await createPod('uses-invalid', [claimVolume('invalid')])
  await createClass('static', 'kubernetes.io/no-provisioner')
  await createClaim('manual', '300Mi', { storageClassName: 'static' })
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'false' }
  await patch(`${CLASSES}/local`, { metadata: { annotations } })
  await createClaim('plain', '300Mi', { storageClassName: undefined })
  await post('/api/v1/persistentvolumes', {
    metadata: { name: 'archive' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: '/srv/archive' },
      claimRef: { namespace: 'default', name: 'deleted', uid: '00000000-0000-4000-8000-000000000000' },
    },
  })
  await post(`${CORE}/resourcequotas`, { metadata: { name: 'team' }, spec: { hard: { 'requests.storage': '28Gi' } } })
  const template = {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'local',
    resources: { requests: { storage: '6Gi' } },
  }
  await createPod('batch', [{ ephemeral: { volumeClaimTemplate: { spec: template } } }])
  await createShopCauses(template)
  await waitFor('pod/uses-growing', { state: 'ready' })
  const requests = { requests: { storage: '4Gi' } }
  await patch(`${CORE}/persistentvolumeclaims/growing`, { spec: { resources: requests } })
}

/** Creates the objects of the namespace `shop`, which has no quota. */
async function createShopCauses(template: object): Promise<void> {
  await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  const limits = [{ type: 'PersistentVolumeClaim', max: { storage: '1Gi' } }]
  await post(`${SHOP}/limitranges`, { metadata: { name: 'small' }, spec: { limits } })
  await createPod('greedy', [{ ephemeral: { volumeClaimTemplate: { spec: template } } }], {}, SHOP)
  const options = { prefix: SHOP, metadata: { finalizers: ['backup.example.com/copy'] } }
  await createClaim('held', '300Mi', { storageClassName: 'static' }, options)
  await server.call('DELETE', `${SHOP}/persistentvolumeclaims/held`)
  await post('/apis/storage.k8s.io/v1/csidrivers', {
    metadata: { name: 'disk.example.com' },
    spec: { attachRequired: true },
  })
  await post('/api/v1/persistentvolumes', {
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '300Mi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'static',
      csi: { driver: 'disk.example.com', volumeHandle: 'disk-1' },
      claimRef: { namespace: 'shop', name: 'disk' },
    },
  })
  await createClaim('disk', '300Mi', { storageClassName: 'static', volumeName: 'disk' }, { prefix: SHOP })
  const [first, second] = server.nodes!.names
  const volumeMounts = [{ name: 'data-0', mountPath: '/data' }]
  const containers = [{ name: 'app', image: 'busybox', command: ['sleep', '3600'], volumeMounts }]
  await createPod('writer', [claimVolume('disk')], { nodeName: first, containers }, SHOP)
  await createPod('reader', [claimVolume('none')], { nodeName: first, containers }, SHOP)
  await vi.waitFor(() => attach('disk', first!), { timeout: 20_000, interval: 200 })
  await createPod('second-writer', [claimVolume('disk')], { nodeName: second, containers }, SHOP)
}

/** Marks the volume as attached, as the attacher of its driver would do. */
async function attach(volumeName: string, nodeName: string): Promise<void> {
  const path = '/apis/storage.k8s.io/v1/volumeattachments'
  const { json } = await server.call('GET', path)
  const isWanted = ({ spec }: { spec: { nodeName: string; source: { persistentVolumeName: string } } }) =>
    spec.nodeName === nodeName && spec.source.persistentVolumeName === volumeName
  const attachment = json.items.find(isWanted)
  expect(attachment).toBeDefined()
  await patch(`${path}/${attachment.metadata.name}/status`, { status: { attached: true } })
}

/** Runs the command in this process, which is faster than a process per command. `object` may be followed by flags. */
async function why(object: string, ...flags: string[]) {
  let stdout = ''
  let stderr = ''
  const words = [...object.split(' '), ...flags]
  const code = await runCommandLine(['node', 'stowage', 'why', ...words, '--kubeconfig', server.kubeconfig], {
    clock: systemClock(),
    random: () => 0.5,
    signal: new AbortController().signal,
    write(text) {
      stdout += text
    },
    writeError(text) {
      stderr += text
    },
  })
  return { code, stdout, stderr }
}

const readJson = async (object: string): Promise<Diagnosis> => JSON.parse((await why(object, '-o', 'json')).stdout)

/** Repeats the command until the server has reached the state. */
const waitFor = (object: string, expected: object): Promise<void> =>
  vi.waitFor(async () => expect(await readJson(object)).toMatchObject(expected), { timeout: 30_000, interval: 300 })

beforeAll(async () => {
  if (skipMessage) return
  dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-why-')))
  leftovers = await findLeftoversBelow(dir)
  server = await startServer({ dataDir: join(dir, 'data'), nodes: 2, flags: ['--pool-size', '1Gi'] })
  await createCauses()
}, 90_000)

afterAll(async () => {
  if (skipMessage) return
  const { json } = await server.call('GET', '/api/v1/pods')
  for (const { metadata } of json.items)
    await server.call('DELETE', `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}?gracePeriodSeconds=0`)
  await server.stop().catch(() => server.kill())
  await leftovers.remove()
  await rm(dir, { recursive: true, force: true })
})

/** Each cause with the arguments of the command and the part of its JSON that names the cause. */
const CAUSES: readonly (readonly [cause: string, object: string, expected: object])[] = [
  [
    'no node matches the node selector',
    'pod/picky',
    {
      state: 'failed',
      reason: 'NoNodeFits',
      numbers: { nodes: 2, fitting: 0 },
      children: [
        { reason: 'NodeAffinityMismatch', numbers: { filter: 'NodeAffinity' } },
        { reason: 'NodeAffinityMismatch' },
      ],
    },
  ],
  ['the class does not exist', 'pvc/misspelt', { state: 'failed', reason: 'StorageClassNotFound' }],
  ['there is no default class', 'pvc/plain', { state: 'failed', reason: 'NoDefaultClass' }],
  [
    'the volume is larger than any node allows',
    'pvc/large',
    {
      state: 'failed',
      reason: 'WaitForPodScheduled',
      children: [
        {
          subject: { kind: 'Pod', name: 'analytics' },
          reason: 'NoNodeFits',
          children: [
            {
              reason: 'MaximumVolumeSizeExceeded',
              numbers: { filter: 'VolumeBinding', requested: '20Gi', class: 'local' },
            },
            { reason: 'MaximumVolumeSizeExceeded' },
          ],
        },
      ],
    },
  ],
  [
    'the claim of the pod does not exist',
    'pod/typo',
    {
      state: 'failed',
      reason: 'ClaimNotFound',
      children: [{ message: expect.stringContaining('similar names: large') }],
    },
  ],
  [
    'a quota rejects the claim of an ephemeral volume',
    'pod/batch',
    {
      state: 'failed',
      reason: 'ClaimNotYetCreated',
      children: [
        {
          reason: 'ClaimNotCreated',
          children: [
            {
              reason: 'QuotaExceeded',
              numbers: { 'requests.storage requested': '6Gi', 'requests.storage limit': '28Gi' },
            },
          ],
        },
      ],
    },
  ],
  ['the provisioner does not run', 'pvc/orders', { state: 'waiting', reason: 'ProvisionerSilent' }],
  [
    'the driver reports no capacity of the class',
    'pvc/invalid',
    {
      state: 'failed',
      reason: 'WaitForPodScheduled',
      children: [
        {
          reason: 'NoNodeFits',
          children: [
            { reason: 'NoCapacityReport', numbers: { filter: 'VolumeBinding', class: 'wrong', requested: '300Mi' } },
            { reason: 'NoCapacityReport' },
          ],
        },
      ],
    },
  ],
  [
    'no volume exists for a class without a provisioner',
    'pvc/manual',
    { state: 'failed', reason: 'NoVolumeAvailable' },
  ],
  ['the volume was released and is retained', 'pv/archive', { state: 'failed', reason: 'Released' }],
  [
    'the expansion exceeds the free capacity',
    'pvc/growing',
    {
      state: 'failed',
      reason: 'ControllerResizeInfeasible',
      numbers: { requested: '4Gi', capacity: '300Mi' },
      children: [{ subject: { kind: 'Condition' } }, { reason: 'UsedByPods' }],
    },
  ],
  [
    'a limit range rejects the claim of an ephemeral volume',
    'pod/greedy -n shop',
    { state: 'failed', children: [{ reason: 'ClaimNotCreated', children: [{ reason: 'LimitRangeViolated' }] }] },
  ],
  [
    'a component has not removed its finalizer',
    'pvc/held -n shop',
    {
      reason: 'BeingDeleted',
      children: [{ subject: { name: 'backup.example.com/copy' }, state: 'failed', reason: 'UnknownFinalizer' }],
    },
  ],
  [
    'the driver is not registered on the node',
    'pod/writer -n shop',
    {
      state: 'failed',
      children: [{ subject: { kind: 'Component', name: 'node' }, numbers: { operation: 'Publish' } }],
    },
  ],
  [
    'the volume is attached to another node',
    'pod/second-writer -n shop',
    {
      state: 'failed',
      reason: 'AttachedToOtherNode',
      children: [{ subject: { kind: 'PersistentVolume', name: 'disk' }, fixes: [{ losesData: false }] }, {}],
    },
  ],
]

describe.skipIf(skipMessage)(`stowage why on a real system${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  for (const [cause, object, expected] of CAUSES) {
    it(`PLUS-1 names the cause if ${cause}`, { timeout: 40_000 }, async () => {
      await waitFor(object, expected)
      expect(await expectOnPage(object)).toBe(1)
    })
  }

  it('PLUS-15 lists the objects that operations wait for', { timeout: 40_000 }, async () => {
    const readAwaited = async () => {
      const { json } = await server.call('GET', '/apis/stowage.dev/v1/operations')
      const rows = json.items.map(
        ({ component, object, waitsFor }: { component: string; object: Ref; waitsFor?: Ref }) =>
          `${component}: ${object.name} waits for ${waitsFor?.kind}`,
      )
      return rows as string[]
    }
    await vi.waitFor(
      async () =>
        expect(await readAwaited()).toEqual(
          expect.arrayContaining([
            'binding: misspelt waits for StorageClass',
            'binding: large waits for Pod',
            'scheduler: typo waits for PersistentVolumeClaim',
            'attaching: disk waits for Pod',
            'node: reader waits for PersistentVolumeClaim',
          ]),
        ),
      { timeout: 20_000, interval: 500 },
    )
  })

  it('PLUS-15 lists no operation for a capacity report that is only repeated', async () => {
    const { json } = await server.call('GET', '/apis/stowage.dev/v1/operations?fieldSelector=operation=ReportCapacity')
    for (const { phase, attempts } of json.items) if (phase === 'Waiting') expect(attempts).toBeGreaterThan(0)
  })

  it('PLUS-1 names the pod that prevents the deletion of a claim', { timeout: 40_000 }, async () => {
    await patch(`${CORE}/persistentvolumeclaims/growing`, { spec: { resources: { requests: { storage: '300Mi' } } } })
    await waitFor('pvc/growing', { state: 'ready' })
    expect((await why('pvc/growing')).code).toBe(0)
    await server.call('DELETE', `${CORE}/persistentvolumeclaims/growing`)
    await waitFor('pvc/growing', {
      state: 'waiting',
      reason: 'BeingDeleted',
      children: [{ reason: 'ClaimInUse', children: [{ subject: { kind: 'Pod', name: 'uses-growing' } }] }],
    })
    await expectOnPage('pvc/growing')
  })

  it('PLUS-1 names the node that no longer responds', { timeout: 40_000 }, async () => {
    await post('/api/v1/nodes', { metadata: { name: 'node-9' } })
    await createPod('stranded', [], { nodeName: 'node-9' }, SHOP)
    await server.call('DELETE', `${SHOP}/pods/stranded`)
    await waitFor('pod/stranded -n shop', {
      state: 'failed',
      reason: 'BeingDeleted',
      children: [{ subject: { kind: 'Node', name: 'node-9' }, state: 'failed' }],
      fixes: [{ losesData: true }],
    })
    await expectOnPage('pod/stranded -n shop')
  })

  it('PLUS-1 runs as a plugin of kubectl, which also completes its words', { timeout: 40_000 }, async () => {
    const kubectl = (await findKubectls()).at(-1)
    expect(kubectl, 'kubectl').toBeDefined()
    await symlink(PROGRAM, join(dir, 'kubectl-stowage'))
    await writeFile(join(dir, 'kubectl_complete-stowage'), completionScript('kubectl'))
    await chmod(join(dir, 'kubectl_complete-stowage'), 0o755)
    const env = { ...process.env, PATH: `${dir}${delimiter}${process.env.PATH}`, KUBECONFIG: server.kubeconfig }
    const run = (...words: string[]) => promisify(execFile)(kubectl!.path, words, { env })
    await expect(run('stowage', 'why', 'pvc/misspelt')).rejects.toMatchObject({
      code: 1,
      stdout: (await why('pvc/misspelt')).stdout,
    })
    const { stdout } = await run('__complete', 'stowage', 'why', 'pvc/mis')
    expect(stdout.split('\n')[0]).toBe('pvc/misspelt')
  })

  it('PLUS-1 exits with 2 and similar names if the object does not exist', async () => {
    const { code, stderr } = await why('pvc/unusd')
    expect(stderr).toBe('stowage: pvc/unusd does not exist in the namespace default. Similar names: unused.\n')
    expect(code).toBe(2)
  })
})

/** Repeats the command until the page shows its output, because capacity is reported with a delay. Returns the exit code. */
async function expectOnPage(object: string): Promise<number> {
  let result = { code: 0, stdout: '' }
  const block = () => `$ stowage why ${object}\n${result.stdout}`
  if (process.env.WHY_PAGE === 'print') {
    result = await why(object)
    console.log(block())
    return result.code
  }
  const page = maskVaryingText(await readFile(PAGE, 'utf8'))
  await vi.waitFor(
    async () => {
      result = await why(object)
      expect(page).toContain(maskVaryingText(block()))
    },
    { timeout: 20_000, interval: 500 },
  )
  return result.code
}

/** Ages, attempts, uids and nodes vary between runs, and so does the free capacity of each node. */
const maskVaryingText = (text: string): string =>
  text
    .replace(/\battempt \d+/g, 'attempt N')
    .replace(/\b\d+ s\b/g, 'AGE')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
    .replace(/\bnode-\d\b/g, 'node-N')
    .replace(/\b\d+(Mi|Gi)(?= \(reported)|(?<=request at most )\w+/g, 'SIZE')
