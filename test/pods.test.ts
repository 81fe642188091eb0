// Tests the whole system as a user runs it: `stowage up` with three nodes, and kubectl. The tests inspect the mounts of the
// node agents; at the end no mount may be left.
import { execFile } from 'node:child_process'
import { chown, mkdir, mkdtemp, open, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const kubectlProgram = (await findKubectls()).at(-1)
const kubectlSkip = kubectlProgram || process.env.CI ? undefined : 'kubectl is not installed'
const skipMessage = kubectlSkip ?? skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const otherUserSkip = kubectlSkip ?? (process.getuid?.() === 0 ? undefined : 'only root can switch users')
const NOBODY = 65_534
const LABEL = 'local.csi.stowage.dev/node'

describe.skipIf(skipMessage)(`three nodes on one machine${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let system: System
  beforeAll(async () => {
    system = await startSystem({ flags: ['--pool-size', '2Gi'] })
  })
  afterAll(() => system?.dispose())

  it('SYS-1 CAP-3 start with one command, with topology, capacity and a default class', async () => {
    const { kubectl } = system
    expect(system.server.nodes).toMatchObject({ names: ['node-1', 'node-2', 'node-3'], backend: 'loop' })
    await kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
    await pollUntil(async () => (await kubectl.json('get csistoragecapacities -n kube-system')).items.length === 3)
    for (const name of ['node-1', 'node-2', 'node-3']) {
      const node = await kubectl.json(`get node ${name}`)
      expect(node.metadata.labels[LABEL]).toBe(name)
      expect(node.status.nodeInfo.kubeletVersion).toMatch(/^v\d/)
      const [driver] = (await kubectl.json(`get csinode ${name}`)).spec.drivers
      expect(driver).toMatchObject({ name: 'local.csi.stowage.dev', nodeID: name, topologyKeys: [LABEL] })
    }
    expect(await kubectl.out('get storageclass')).toMatch(/local \(default\) +local\.csi\.stowage\.dev .*WaitForFirst/)
  })

  it('SYS-7 run a pod on the node of its volume, and keep the data for the next pod on the same claim', async () => {
    await system.apply(aClaim('orders'), aPod('shop', ['orders']))
    const firstPod = await system.waitUntilRunning('shop')
    const volume = await system.getVolume('orders')
    expect(volume.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions).toEqual([
      { key: LABEL, operator: 'In', values: [firstPod.spec.nodeName] },
    ])
    const path = await system.publishedPath(firstPod, 'orders')
    await writeFile(join(path, 'order'), 'two apples')
    expect(await system.listLeftovers()).toContainEqual(expect.stringContaining(` at ${path}`)) // while the volume is in use
    await system.kubectl.out('delete pod shop')
    await expect(stat(path)).rejects.toThrow(/ENOENT/)

    await system.apply(aPod('office', ['orders']))
    const nextPod = await system.waitUntilRunning('office')
    expect(nextPod.spec.nodeName).toBe(firstPod.spec.nodeName)
    expect(await readFile(join(await system.publishedPath(nextPod, 'orders'), 'order'), 'utf8')).toBe('two apples')
  })

  it('PIO-8 report volume statistics: bytes, inodes, iops and throughput', async () => {
    const metrics = () => system.kubectl.out(['get', '--raw', '/metrics'])
    const claimLabels = 'namespace="default",persistentvolumeclaim="orders"'
    await pollUntil(async () => (await metrics()).includes(`kubelet_volume_stats_capacity_bytes{${claimLabels}}`))
    const text = await metrics()
    for (const name of ['available_bytes', 'used_bytes', 'inodes', 'inodes_free', 'inodes_used']) {
      expect(text).toContain(`kubelet_volume_stats_${name}{${claimLabels}}`)
    }
    for (const name of ['iops_used', 'throughput_used_bytes']) {
      expect(text).toContain(`stowage_volume_${name}{${claimLabels},direction="write"}`)
    }
  })

  it('SYS-1 SYS-7 keep volumes mounted and pods Running across a restart', async () => {
    const pod = await system.waitUntilRunning('office')
    const file = join(await system.publishedPath(pod, 'orders'), 'order')
    await system.server.stop()
    expect(await readFile(file, 'utf8')).toBe('two apples')
    await system.start()
    await system.kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
    expect((await system.waitUntilRunning('office')).metadata.uid).toBe(pod.metadata.uid)
    expect(await readFile(file, 'utf8')).toBe('two apples')
    await system.deleteAll()
  })

  it('CAP-12 CAP-15 run a pod with two volumes on a node with capacity for both, and report the reason if there is none', async () => {
    // Of 2Gi, node-1 has 512Mi free, node-2 768Mi, and node-3 all. Each volume alone fits on any node.
    await system.apply(
      ...[aClaim('fills-1', '1536Mi'), aPod('fills-1', ['fills-1'], nodeSelector('node-1'))],
      ...[aClaim('fills-2', '1280Mi'), aPod('fills-2', ['fills-2'], nodeSelector('node-2'))],
    )
    await system.waitUntilRunning('fills-1')
    await system.waitUntilRunning('fills-2')
    await system.apply(aClaim('left', '400Mi'), aClaim('right', '400Mi'), aPod('both', ['left', 'right']))
    const pod = await system.waitUntilRunning('both')
    expect(pod.spec.nodeName).toBe('node-3')

    await system.apply(aClaim('vast', '1900Mi'), aPod('vast', ['vast']))
    const { kubectl } = system
    await kubectl.out(['wait', 'pod/vast', '--for=condition=PodScheduled=false', '--timeout=60s'])
    await pollUntil(async () => (await system.listWarnings('vast')).length > 0)
    expect((await system.listWarnings('vast'))[0]).toContain(
      'FailedScheduling: 0/3 nodes are available: 3 node(s) did not have enough free storage',
    )
    expect((await kubectl.json('get pvc vast')).status.phase).toBe('Pending')

    // The deletions free capacity, so the scheduler places the pending pod.
    await kubectl.out('delete pod/both pvc/left pvc/right')
    expect((await system.waitUntilRunning('vast')).spec.nodeName).toBe('node-3')
    await system.deleteAll()
  })

  it('CAP-14 create and delete an ephemeral volume with its pod', async () => {
    const volumeClaimTemplate = { spec: aClaim('any').spec }
    const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate } }]
    await system.apply(aPod('brief', [], { containers: [containerWith('scratch')], volumes }))
    const pod = await system.waitUntilRunning('brief')
    await writeFile(join(await system.publishedPath(pod, 'brief-scratch'), 'note'), 'ephemeral')
    await system.kubectl.out('delete pod brief')
    await pollUntil(async () => (await system.kubectl.json('get pvc,pv')).items.length === 0)
  })

  it('SYS-7 publish a block volume as a device, and keep its data', async () => {
    const spec = {
      containers: [{ name: 'main', image: 'none', volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] }],
      volumes: [{ name: 'raw', persistentVolumeClaim: { claimName: 'raw' } }],
    }
    await system.apply(aClaim('raw', '64Mi', { volumeMode: 'Block' }), aPod('raw', [], spec))
    const device = await system.publishedPath(await system.waitUntilRunning('raw'), 'raw')
    expect((await stat(device)).isBlockDevice()).toBe(true)
    const file = await open(device, 'r+')
    await file.write('bytes')
    await file.sync()
    await file.close()
    await system.kubectl.out('delete pod raw')
    await system.apply(aPod('raw-again', [], spec))
    const reopenedDevice = await open(await system.publishedPath(await system.waitUntilRunning('raw-again'), 'raw'))
    const { buffer } = await reopenedDevice.read(Buffer.alloc(5), 0, 5, 0)
    await reopenedDevice.close()
    expect(buffer.toString()).toBe('bytes')
    await system.deleteAll()
  })

  it('SYS-7 make a volume writable for its fsGroup, and mount read-only volumes read-only', async () => {
    await system.apply(aClaim('shared'), aPod('owner', ['shared'], { securityContext: { fsGroup: 4_242 } }))
    const path = await system.publishedPath(await system.waitUntilRunning('owner'), 'shared')
    const { gid, mode } = await stat(path)
    expect({ gid, mode: mode & 0o7777 }).toEqual({ gid: 4_242, mode: 0o2775 })
    await writeFile(join(path, 'file'), 'kept')
    expect((await stat(join(path, 'file'))).gid).toBe(4_242)
    await system.kubectl.out('delete pod owner')

    const volumes = [{ name: 'shared', persistentVolumeClaim: { claimName: 'shared', readOnly: true } }]
    await system.apply(aPod('reader', ['shared'], { volumes }))
    const readOnlyPath = await system.publishedPath(await system.waitUntilRunning('reader'), 'shared')
    expect(await readFile(join(readOnlyPath, 'file'), 'utf8')).toBe('kept')
    await expect(writeFile(join(readOnlyPath, 'file'), 'changed')).rejects.toThrow(/EROFS/)
    await system.deleteAll()
  })

  it('SYS-7 leave no device, mount, directory or volume after everything is deleted', async () => {
    // An agent removes the directory of a pod after the pod object.
    await expect.poll(() => system.listLeftovers(), { timeout: 60_000 }).toEqual([])
  })
})

describe.skipIf(otherUserSkip)(`nodes without root${otherUserSkip ? ` (${otherUserSkip})` : ''}`, () => {
  let system: System
  beforeAll(async () => {
    system = await startSystem({ flags: ['--pool-size', '1Gi'], uid: NOBODY })
  })
  afterAll(() => system?.dispose())

  it('SYS-1 SYS-7 use directories as volumes, report the backend, and keep the data of pods', async () => {
    expect(system.server.nodes).toMatchObject({ backend: 'directory' })
    await system.apply(aClaim('notes'), aPod('writer', ['notes']))
    const firstPod = await system.waitUntilRunning('writer')
    const path = await system.publishedPath(firstPod, 'notes')
    await promisify(execFile)('sh', ['-c', 'echo kept > note'], { cwd: path, uid: NOBODY, gid: NOBODY })
    await system.kubectl.out('delete pod writer')
    await system.apply(aPod('reader', ['notes']))
    const nextPod = await system.waitUntilRunning('reader')
    expect(nextPod.spec.nodeName).toBe(firstPod.spec.nodeName)
    expect(await readFile(join(await system.publishedPath(nextPod, 'notes'), 'note'), 'utf8')).toBe('kept\n')
    await system.deleteAll()
  })

  it('PROV-10 report unsupported block volumes, and create none', async () => {
    const volumes = [{ name: 'raw', persistentVolumeClaim: { claimName: 'raw' } }]
    const containers = [{ name: 'main', image: 'none', volumeDevices: [{ name: 'raw', devicePath: '/dev/raw' }] }]
    await system.apply(aClaim('raw', '64Mi', { volumeMode: 'Block' }), aPod('raw', [], { containers, volumes }))
    await pollUntil(async () =>
      (await system.listWarnings('raw')).some((warning) => /ProvisioningFailed.*block/i.test(warning)),
    )
    await system.deleteAll()
    // An agent removes the directory of a pod after the pod object.
    await expect.poll(() => system.listLeftovers(), { timeout: 60_000 }).toEqual([])
  })
})

type System = Awaited<ReturnType<typeof startSystem>>

async function startSystem({ flags, uid }: { readonly flags: readonly string[]; readonly uid?: number }) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-pods-')))
  const dataDir = join(dir, 'data')
  await mkdir(dataDir)
  if (uid !== undefined) for (const path of [dir, dataDir]) await chown(path, uid, uid)
  const hostLeftovers: HostLeftovers = await findLeftoversBelow(dir)
  let server: RunningServer
  let kubectl: Kubectl
  const start = async () => {
    server = await startServer({ dataDir, nodes: 3, flags, ...(uid === undefined ? {} : { uid }) })
    kubectl = createKubectl({
      program: kubectlProgram!,
      kubeconfig: server.kubeconfig,
      namespace: 'default',
      home: dir,
    })
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
    async waitUntilRunning(name: string) {
      await kubectl.out(['wait', `pod/${name}`, '--for=jsonpath={.status.phase}=Running', '--timeout=60s'])
      return kubectl.json(`get pod ${name}`)
    },
    async getVolume(claim: string) {
      return kubectl.json(`get pv ${(await kubectl.json(`get pvc ${claim}`)).spec.volumeName}`)
    },
    /** Returns the path at which the claim's volume is published for the pod. */
    async publishedPath(pod: any, claim: string): Promise<string> {
      const { volumeName, volumeMode } = (await kubectl.json(`get pvc ${claim}`)).spec
      const podDir = join(rootOf(pod.spec.nodeName), 'pods', pod.metadata.uid)
      return volumeMode === 'Block'
        ? join(podDir, 'volumeDevices', 'kubernetes.io~csi', volumeName)
        : join(podDir, 'volumes', 'kubernetes.io~csi', volumeName, 'mount')
    },
    async listWarnings(name: string): Promise<string[]> {
      const { items } = await kubectl.json(`get events --field-selector involvedObject.name=${name},type=Warning`)
      return items.map(({ reason, message }: { reason: string; message: string }) => `${reason}: ${message}`)
    },
    /** Deletes every pod and claim, and waits until their volumes are deleted. */
    async deleteAll() {
      await kubectl.out('delete pod,pvc --all --timeout=60s')
      await pollUntil(async () => (await kubectl.json('get pv')).items.length === 0)
    },
    /** Returns leftovers of pods and volumes on the machine and in the directories of the nodes. */
    async listLeftovers(): Promise<string[]> {
      const directories = nodes.flatMap((node) => [
        join(rootOf(node), 'pods'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'local.csi.stowage.dev'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'volumeDevices', 'publish'),
        join(rootOf(node), 'plugins', 'kubernetes.io', 'csi', 'volumeDevices', 'staging'),
        ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(rootOf(node), '..', 'pool', kind)),
      ])
      const files = await Promise.all(
        directories.map(async (path) => (await readdir(path).catch(() => [])).map((name) => join(path, name))),
      )
      return [...(await hostLeftovers.list()), ...files.flat()]
    },
    async dispose() {
      await server.stop()
      await hostLeftovers.remove()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Polls until the condition is true or the test times out. */
async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
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

const containerWith = (...volumes: string[]) => ({
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
    containers: [containerWith(...claims)],
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    ...spec,
  },
})

const nodeSelector = (node: string) => ({ nodeSelector: { 'kubernetes.io/hostname': node } })
