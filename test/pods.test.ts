// The whole system in one command, as a user sees it: `stowage up` with three nodes, kubectl, and real volumes. The tests
// inspect the agent's mounts; at the end none may be left.
import { execFile } from 'node:child_process'
import { chown, mkdir, mkdtemp, open, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const program = (await findKubectls()).at(-1)
const noKubectl = program || process.env.CI ? undefined : 'kubectl is not installed'
const noLoops = noKubectl ?? skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const noOtherUser = noKubectl ?? (process.getuid?.() === 0 ? undefined : 'only root can switch users')
const NOBODY = 65_534
const LABEL = 'local.csi.stowage.dev/node'

describe.skipIf(noLoops)(`three nodes on one machine${noLoops ? ` (${noLoops})` : ''}`, () => {
  let system: System
  beforeAll(async () => {
    system = await startSystem({ flags: ['--pool-size', '2Gi'] })
  })
  afterAll(() => system?.dispose())

  it('SYS-1 CAP-3 start with one command, each with its topology and capacity, and a default class', async () => {
    const { kubectl } = system
    expect(system.server.nodes).toMatchObject({ names: ['node-1', 'node-2', 'node-3'], backend: 'loop' })
    await kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
    await until(async () => (await kubectl.json('get csistoragecapacities -n kube-system')).items.length === 3)
    for (const name of ['node-1', 'node-2', 'node-3']) {
      const node = await kubectl.json(`get node ${name}`)
      expect(node.metadata.labels[LABEL]).toBe(name)
      expect(node.status.nodeInfo.kubeletVersion).toMatch(/^v\d/)
      const [driver] = (await kubectl.json(`get csinode ${name}`)).spec.drivers
      expect(driver).toMatchObject({ name: 'local.csi.stowage.dev', nodeID: name, topologyKeys: [LABEL] })
    }
    expect(await kubectl.out('get storageclass')).toMatch(/local \(default\) +local\.csi\.stowage\.dev .*WaitForFirst/)
  })

  it('SYS-7 runs a pod where its volume is, and keeps its data for the next pod on the same claim', async () => {
    await system.apply(aClaim('orders'), aPod('shop', ['orders']))
    const first = await system.running('shop')
    const volume = await system.volumeOf('orders')
    expect(volume.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions).toEqual([
      { key: LABEL, operator: 'In', values: [first.spec.nodeName] },
    ])
    const path = await system.published(first, 'orders')
    await writeFile(join(path, 'order'), 'two apples')
    expect(await system.leftovers()).toContainEqual(expect.stringContaining(` at ${path}`)) // while it is in use
    await system.kubectl.out('delete pod shop')
    await expect(stat(path)).rejects.toThrow(/ENOENT/)

    await system.apply(aPod('office', ['orders']))
    const next = await system.running('office')
    expect(next.spec.nodeName).toBe(first.spec.nodeName)
    expect(await readFile(join(await system.published(next, 'orders'), 'order'), 'utf8')).toBe('two apples')
  })

  it('PIO-8 serves volume statistics: bytes, inodes, iops and throughput', async () => {
    const metrics = () => system.kubectl.out(['get', '--raw', '/metrics'])
    const of = 'namespace="default",persistentvolumeclaim="orders"'
    await until(async () => (await metrics()).includes(`kubelet_volume_stats_capacity_bytes{${of}}`))
    const text = await metrics()
    for (const name of ['available_bytes', 'used_bytes', 'inodes', 'inodes_free', 'inodes_used']) {
      expect(text).toContain(`kubelet_volume_stats_${name}{${of}}`)
    }
    for (const name of ['iops_used', 'throughput_used_bytes']) {
      expect(text).toContain(`stowage_volume_${name}{${of},direction="write"}`)
    }
  })

  it('SYS-1 SYS-7 a second start continues: volumes stay mounted, the pod stays Running', async () => {
    const pod = await system.running('office')
    const file = join(await system.published(pod, 'orders'), 'order')
    await system.server.stop()
    expect(await readFile(file, 'utf8')).toBe('two apples')
    await system.start()
    await system.kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
    expect((await system.running('office')).metadata.uid).toBe(pod.metadata.uid)
    expect(await readFile(file, 'utf8')).toBe('two apples')
    await system.gone()
  })

  it('SYS-7 schedules a pod with two volumes where both fit; if none fits, the pod reports the reason', async () => {
    // Of 2Gi each, node-1 has 512Mi left, node-2 768Mi, node-3 all. Either volume alone would fit on any of them.
    await system.apply(
      ...[aClaim('fills-1', '1536Mi'), aPod('fills-1', ['fills-1'], on('node-1'))],
      ...[aClaim('fills-2', '1280Mi'), aPod('fills-2', ['fills-2'], on('node-2'))],
    )
    await system.running('fills-1')
    await system.running('fills-2')
    await system.apply(aClaim('left', '400Mi'), aClaim('right', '400Mi'), aPod('both', ['left', 'right']))
    const both = await system.running('both')
    expect(both.spec.nodeName).toBe('node-3')

    await system.apply(aClaim('vast', '1900Mi'), aPod('vast', ['vast']))
    const { kubectl } = system
    await kubectl.out(['wait', 'pod/vast', '--for=condition=PodScheduled=false', '--timeout=60s'])
    await until(async () => (await system.warnings('vast')).length > 0)
    expect((await system.warnings('vast'))[0]).toContain(
      'FailedScheduling: 0/3 nodes are available: 3 node(s) did not have enough free storage',
    )
    expect((await kubectl.json('get pvc vast')).status.phase).toBe('Pending')

    // Capacity is freed: the waiting pod is scheduled automatically.
    await kubectl.out('delete pod/both pvc/left pvc/right')
    expect((await system.running('vast')).spec.nodeName).toBe('node-3')
    await system.gone()
  })

  it('SYS-7 creates and deletes an ephemeral volume with its pod', async () => {
    const volumeClaimTemplate = { spec: aClaim('any').spec }
    const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate } }]
    await system.apply(aPod('brief', [], { containers: [mounting('scratch')], volumes }))
    const pod = await system.running('brief')
    await writeFile(join(await system.published(pod, 'brief-scratch'), 'note'), 'soon gone')
    await system.kubectl.out('delete pod brief')
    await until(async () => (await system.kubectl.json('get pvc,pv')).items.length === 0)
  })

  it('SYS-7 publishes a block volume as a device, and keeps its bytes', async () => {
    const spec = {
      containers: [{ name: 'main', image: 'none', volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] }],
      volumes: [{ name: 'raw', persistentVolumeClaim: { claimName: 'raw' } }],
    }
    await system.apply(aClaim('raw', '64Mi', { volumeMode: 'Block' }), aPod('raw', [], spec))
    const device = await system.published(await system.running('raw'), 'raw')
    expect((await stat(device)).isBlockDevice()).toBe(true)
    const written = await open(device, 'r+')
    await written.write('bytes')
    await written.sync()
    await written.close()
    await system.kubectl.out('delete pod raw')
    await system.apply(aPod('raw-again', [], spec))
    const again = await open(await system.published(await system.running('raw-again'), 'raw'))
    const { buffer } = await again.read(Buffer.alloc(5), 0, 5, 0)
    await again.close()
    expect(buffer.toString()).toBe('bytes')
    await system.gone()
  })

  it('SYS-7 fsGroup may write to the volume, and a read-only mount cannot be written', async () => {
    await system.apply(aClaim('shared'), aPod('owner', ['shared'], { securityContext: { fsGroup: 4_242 } }))
    const path = await system.published(await system.running('owner'), 'shared')
    const { gid, mode } = await stat(path)
    expect({ gid, mode: mode & 0o7777 }).toEqual({ gid: 4_242, mode: 0o2775 })
    await writeFile(join(path, 'file'), 'kept')
    expect((await stat(join(path, 'file'))).gid).toBe(4_242)
    await system.kubectl.out('delete pod owner')

    const volumes = [{ name: 'shared', persistentVolumeClaim: { claimName: 'shared', readOnly: true } }]
    await system.apply(aPod('reader', ['shared'], { volumes }))
    const read = await system.published(await system.running('reader'), 'shared')
    expect(await readFile(join(read, 'file'), 'utf8')).toBe('kept')
    await expect(writeFile(join(read, 'file'), 'changed')).rejects.toThrow(/EROFS/)
    await system.gone()
  })

  it('SYS-7 leaves no device, mount, directory or volume after everything is deleted', async () => {
    expect(await system.leftovers()).toEqual([])
  })
})

describe.skipIf(noOtherUser)(`nodes without root${noOtherUser ? ` (${noOtherUser})` : ''}`, () => {
  let system: System
  beforeAll(async () => {
    system = await startSystem({ flags: ['--pool-size', '1Gi'], uid: NOBODY })
  })
  afterAll(() => system?.dispose())

  it('SYS-1 SYS-7 use directories as volumes, report it, and keep the data of pods', async () => {
    expect(system.server.nodes).toMatchObject({ backend: 'directory' })
    await system.apply(aClaim('notes'), aPod('writer', ['notes']))
    const first = await system.running('writer')
    const path = await system.published(first, 'notes')
    await promisify(execFile)('sh', ['-c', 'echo kept > note'], { cwd: path, uid: NOBODY, gid: NOBODY })
    await system.kubectl.out('delete pod writer')
    await system.apply(aPod('reader', ['notes']))
    const next = await system.running('reader')
    expect(next.spec.nodeName).toBe(first.spec.nodeName)
    expect(await readFile(join(await system.published(next, 'notes'), 'note'), 'utf8')).toBe('kept\n')
    await system.gone()
  })

  it('SYS-7 report missing capabilities, and create no volume that no pod could use', async () => {
    const volumes = [{ name: 'raw', persistentVolumeClaim: { claimName: 'raw' } }]
    const containers = [{ name: 'main', image: 'none', volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] }]
    await system.apply(aClaim('raw', '64Mi', { volumeMode: 'Block' }), aPod('raw', [], { containers, volumes }))
    await until(async () =>
      (await system.warnings('raw')).some((warning) => /ProvisioningFailed.*block/i.test(warning)),
    )
    await system.gone()
    expect(await system.leftovers()).toEqual([])
  })
})

type System = Awaited<ReturnType<typeof startSystem>>

async function startSystem({ flags, uid }: { readonly flags: readonly string[]; readonly uid?: number }) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-pods-')))
  const dataDir = join(dir, 'data')
  await mkdir(dataDir)
  if (uid !== undefined) for (const path of [dir, dataDir]) await chown(path, uid, uid)
  const traces: Traces = await tracesBelow(dir)
  let server: RunningServer
  let kubectl: Kubectl
  const start = async () => {
    server = await startServer({ dataDir, nodes: 3, flags, ...(uid === undefined ? {} : { uid }) })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })
  }
  await start()
  const rootOf = (node: string) => join(dataDir, 'nodes', node, 'agent')
  const nodes = ['node-1', 'node-2', 'node-3']

  return {
    get server() {
      return server
    },
    get kubectl() {
      return kubectl
    },
    start,
    apply: (...items: object[]) =>
      kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) }),
    async running(name: string) {
      await kubectl.out(['wait', `pod/${name}`, '--for=jsonpath={.status.phase}=Running', '--timeout=60s'])
      return kubectl.json(`get pod ${name}`)
    },
    async volumeOf(claim: string) {
      return kubectl.json(`get pv ${(await kubectl.json(`get pvc ${claim}`)).spec.volumeName}`)
    },
    /** Where the claim's volume is mounted for the pod. */
    async published(pod: any, claim: string): Promise<string> {
      const { volumeName, volumeMode } = (await kubectl.json(`get pvc ${claim}`)).spec
      const ofPod = join(rootOf(pod.spec.nodeName), 'pods', pod.metadata.uid)
      return volumeMode === 'Block'
        ? join(ofPod, 'volumeDevices', 'kubernetes.io~csi', volumeName)
        : join(ofPod, 'volumes', 'kubernetes.io~csi', volumeName, 'mount')
    },
    async warnings(name: string): Promise<string[]> {
      const { items } = await kubectl.json(`get events --field-selector involvedObject.name=${name},type=Warning`)
      return items.map(({ reason, message }: { reason: string; message: string }) => `${reason}: ${message}`)
    },
    /** Deletes every pod and claim, and waits until their volumes are deleted. */
    async gone() {
      await kubectl.out('delete pod,pvc --all --timeout=60s')
      await until(async () => (await kubectl.json('get pv')).items.length === 0)
    },
    /** Leftovers of pods and volumes on the machine and in the directories of nodes. */
    async leftovers(): Promise<string[]> {
      const files = nodes.flatMap((node) => [
        join(rootOf(node), 'pods'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'local.csi.stowage.dev'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'volumeDevices', 'publish'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'volumeDevices', 'staging'),
        ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(rootOf(node), '..', 'pool', kind)),
      ])
      const found = await Promise.all(
        files.map(async (path) => (await readdir(path).catch(() => [])).map((name) => join(path, name))),
      )
      return [...(await traces.list()), ...found.flat()]
    },
    async dispose() {
      await server.stop()
      await traces.scrub()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Polls until the test's own timeout. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 100))
}

function aClaim(name: string, storage = '320Mi', spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
  }
}

const mounting = (...volumes: string[]) => ({
  name: 'main',
  image: 'none',
  volumeMounts: volumes.map((name) => ({ name, mountPath: `/data/${name}` })),
})

const aPod = (name: string, claims: readonly string[], spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [mounting(...claims)],
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    ...spec,
  },
})

const on = (node: string) => ({ nodeSelector: { 'kubernetes.io/hostname': node } })
