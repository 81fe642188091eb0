// Runs `stowage node list|cordon|uncordon|drain|fence|unfence|forget` against an API server on a port. The test takes the place of the
// node agent and of the attacher.
import { beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../../base/clock.ts'
import { startProgramFixture } from '../../../program.fixture.ts'
import { runCommandLine } from '../../../run.ts'

const DRIVER = 'local.example.com'
const STORAGE = '/apis/storage.k8s.io/v1'
const PODS = '/api/v1/namespaces/default/pods'

let program: Awaited<ReturnType<typeof startProgramFixture>>

async function post(path: string, body: object): Promise<void> {
  const { status, json } = await program.api.post(path, body)
  expect(status, JSON.stringify(json)).toBe(201)
}

async function patch(path: string, body: object): Promise<void> {
  const { status, json } = await program.api.patch(path, body, 'merge')
  expect(status, JSON.stringify(json)).toBe(200)
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', 'node', ...args, '--kubeconfig', program.kubeconfig], {
    clock: systemClock(),
    random: () => 0.5,
    signal: program.signal,
    write: (text) => {
      out += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

async function setReady(node: string, status: 'True' | 'Unknown', fields: object = {}): Promise<void> {
  await patch(`/api/v1/nodes/${node}/status`, { status: { conditions: [{ type: 'Ready', status }], ...fields } })
}

async function createVolume(name: string, node?: string): Promise<void> {
  const values = node ? [node] : ['a', 'b']
  await post('/api/v1/persistentvolumes', {
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      csi: { driver: DRIVER, volumeHandle: name },
      claimRef: { namespace: 'default', name },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values }] }],
        },
      },
    },
  })
  await post('/api/v1/namespaces/default/persistentvolumeclaims', {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      volumeName: name,
      resources: { requests: { storage: '1Gi' } },
    },
  })
}

const OWNER = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u', controller: true }

async function createPod(name: string, { claim = '', spec = {}, isOwned = true } = {}): Promise<void> {
  const volumes = claim ? [{ name: 'data', persistentVolumeClaim: { claimName: claim } }] : []
  await post(PODS, {
    metadata: { name, ...(isOwned ? { ownerReferences: [OWNER] } : {}) },
    spec: {
      nodeName: 'a',
      containers: [{ name: 'app', image: 'app' }],
      volumes,
      terminationGracePeriodSeconds: 0,
      ...spec,
    },
  })
}

beforeEach(async () => {
  program = await startProgramFixture()
  for (const name of ['a', 'b']) {
    await post('/api/v1/nodes', { metadata: { name, labels: { 'kubernetes.io/hostname': name } } })
    await setReady(name, 'True')
    await post(`${STORAGE}/csinodes`, { metadata: { name }, spec: { drivers: [{ name: DRIVER, nodeID: name }] } })
  }
})

const readNode = async (name: string) => (await program.api.get(`/api/v1/nodes/${name}`)).json
const readNames = async (path: string): Promise<string[]> =>
  (await program.api.get(path)).json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)

describe('stowage node list', () => {
  it('shows the state of each node, its pods and the volumes that exist on it only', async () => {
    await createVolume('only-a', 'a')
    await createVolume('shared')
    await createPod('web-0', { claim: 'only-a' })
    await setReady('b', 'Unknown')
    expect((await run('cordon', 'a')).out).toBe('Node a is cordoned: it gets no new pods.\n')
    const { code, out } = await run('list')
    expect({ code, out }).toEqual({
      code: 0,
      out:
        'NAME  STATE           PODS  ATTACHED  LOCAL  DRIVERS\n' +
        `a     Ready,Cordoned     1         0      1  ${DRIVER}\n` +
        `b     Unreachable        0         0      0  ${DRIVER}\n`,
    })
  })
})

describe('stowage node list of a node whose labels and drivers do not match', () => {
  it('shows the conditions of the topology that are True', async () => {
    const conditions = [
      { type: 'Ready', status: 'True' },
      { type: 'TopologyMismatch', status: 'True' },
      { type: 'TopologyConflict', status: 'False' },
    ]
    await patch('/api/v1/nodes/a/status', { status: { conditions } })
    expect((await run('list')).out).toContain('a     Ready,TopologyMismatch ')
  })
})

describe('stowage node cordon', () => {
  it('cordons and uncordons, changes nothing in a dry run, and suggests similar names', async () => {
    expect((await run('cordon', 'a', '--dry-run')).out).toBe('Node a would be cordoned: it gets no new pods.\n')
    expect((await readNode('a')).spec?.unschedulable).toBeUndefined()
    await run('cordon', 'a')
    expect((await readNode('a')).spec.unschedulable).toBe(true)
    expect((await run('cordon', 'a')).out).toBe('Node a is already cordoned: it gets no new pods.\n')
    expect((await run('uncordon', 'a')).out).toBe('Node a is uncordoned: it gets new pods.\n')
    expect((await readNode('a')).spec.unschedulable).toBeUndefined()
    expect(await run('cordon', 'aa')).toMatchObject({
      code: 1,
      err: expect.stringContaining('There is no node "aa". Similar names: a'),
    })
  })
})

const DRAINED_VOLUMES = Number(process.env.DRAINED_VOLUMES ?? 30)

describe('stowage node drain', () => {
  it('lists in a dry run which pods move, which stay, and what would be lost', async () => {
    await createVolume('only-a', 'a')
    await createVolume('shared')
    await createPod('daemon', { spec: {} })
    await patch(`${PODS}/daemon`, { metadata: { ownerReferences: [{ ...OWNER, kind: 'DaemonSet' }] } })
    await createPod('web-0', { claim: 'shared' })
    await createPod('web-1', { claim: 'only-a' })
    await createPod('bare', { isOwned: false })
    await createPod('cache', { spec: { volumes: [{ name: 'tmp', emptyDir: {} }] } })
    const { code, out } = await run('drain', 'a', '--dry-run')
    expect({ code, out }).toEqual({
      code: 1,
      out:
        'POD             ACTION  REASON\n' +
        'default/bare    stays   no controller creates it again (evict it with --force)\n' +
        'default/cache   stays   the data of its emptyDir volumes is lost (evict it with --delete-emptydir-data)\n' +
        'default/daemon  stays   its DaemonSet would create it again on this node\n' +
        'default/web-0   moves\n' +
        'default/web-1   stays   only-a exists on this node only, so the pod cannot run elsewhere (evict it with --evict-local)\n',
    })
    expect((await readNode('a')).spec?.unschedulable).toBeUndefined()
    const flags = ['--force', '--evict-local', '--delete-emptydir-data']
    expect((await run('drain', 'a', '--dry-run', ...flags)).code).toBe(0)
  })

  it('evicts pods, waits until their volumes are detached, and keeps pods that would lose data', async () => {
    await createVolume('shared')
    await createPod('web-0', { claim: 'shared' })
    await createPod('bare', { isOwned: false })
    await post(`${STORAGE}/volumeattachments`, {
      metadata: { name: 'va' },
      spec: { attacher: DRIVER, nodeName: 'a', source: { persistentVolumeName: 'shared' } },
    })
    expect(await run('drain', 'a', '--timeout', '0s')).toMatchObject({
      code: 1,
      out: expect.stringContaining('Run the command again to continue.'),
    })
    expect((await readNode('a')).spec.unschedulable).toBe(true)
    await program.api.delete(`${PODS}/web-0?gracePeriodSeconds=0`)
    expect(await run('drain', 'a', '--timeout', '0s')).toMatchObject({ code: 1 })
    await program.api.delete(`${STORAGE}/volumeattachments/va`)
    const { code, out } = await run('drain', 'a', '--force', '--grace-period', '0')
    expect(code, out).toBe(0)
    expect(await readNames(PODS)).toEqual([])
  })

  it('waits in a repeated drain for the volumes of pods that the first one removed, but not for those of pods that stay', async () => {
    for (const name of ['moved', 'kept']) {
      await createVolume(name)
      await post(`${STORAGE}/volumeattachments`, {
        metadata: { name },
        spec: { attacher: DRIVER, nodeName: 'a', source: { persistentVolumeName: name } },
      })
    }
    await createPod('daemon', { claim: 'kept' })
    await patch(`${PODS}/daemon`, { metadata: { ownerReferences: [{ ...OWNER, kind: 'DaemonSet' }] } })
    await createPod('web-0', { claim: 'moved' })
    await run('drain', 'a', '--timeout', '0s')
    await program.api.delete(`${PODS}/web-0?gracePeriodSeconds=0`)
    const { code, out } = await run('drain', 'a', '--timeout', '0s')
    expect({ code, out }).toEqual({ code: 1, out: expect.stringContaining('moved') })
    expect(out).not.toContain('kept')
    await program.api.delete(`${STORAGE}/volumeattachments/moved`)
    expect((await run('drain', 'a', '--timeout', '0s')).code).toBe(0)
  })

  it('reports a node on which only the pod of a DaemonSet stays as drained', async () => {
    await createPod('daemon')
    await patch(`${PODS}/daemon`, { metadata: { ownerReferences: [{ ...OWNER, kind: 'DaemonSet' }] } })
    const { code, out } = await run('drain', 'a', '-o', 'json')
    expect([code, JSON.parse(out)]).toMatchObject([0, { isDrained: true, movedPods: [], waitingPods: [] }])
    await createPod('bare', { isOwned: false })
    const incompleteRun = await run('drain', 'a', '-o', 'json')
    expect([incompleteRun.code, JSON.parse(incompleteRun.out)]).toMatchObject([1, { isDrained: false }])
  })

  it('drains a node with many attached volumes, and continues after an interruption', async () => {
    const names = Array.from({ length: DRAINED_VOLUMES }, (_, i) => `disk-${String(i).padStart(3, '0')}`)
    for (const name of names) {
      await createVolume(name)
      await createPod(`pod-${name}`, { claim: name })
      await post(`${STORAGE}/volumeattachments`, {
        metadata: { name },
        spec: { attacher: DRIVER, nodeName: 'a', source: { persistentVolumeName: name } },
      })
    }
    const plan = await run('drain', 'a', '--dry-run')
    expect(plan).toMatchObject({ code: 0 })
    expect(plan.out.match(/ moves$/gm)).toHaveLength(names.length)
    expect((await readNode('a')).spec?.unschedulable).toBeUndefined()
    expect(await run('drain', 'a', '--timeout', '0s')).toMatchObject({
      code: 1,
      out: expect.stringContaining('Run the command again to continue.'),
    })
    const detached = names.slice(0, Math.floor(names.length / 2))
    for (const name of detached) {
      await program.api.delete(`${PODS}/pod-${name}?gracePeriodSeconds=0`)
      await program.api.delete(`${STORAGE}/volumeattachments/${name}`)
    }
    expect((await run('drain', 'a', '--dry-run')).out).not.toContain(`pod-${detached[0]} `)
    for (const name of names.slice(detached.length)) await program.api.delete(`${STORAGE}/volumeattachments/${name}`)
    const { code, out } = await run('drain', 'a', '--grace-period', '0')
    expect(code, out).toBe(0)
    expect(await readNames(PODS)).toEqual([])
  })

  it.each([
    [['--grace-period', 'x'], '--grace-period "x": expected a whole number of seconds'],
    [['--timeout', 'soon'], '--timeout "soon": expected a duration'],
  ])('rejects the flag %j and names the expected value', async (flags, message) => {
    expect(await run('drain', 'a', ...flags)).toMatchObject({ code: 2, err: expect.stringContaining(message) })
  })
})

describe('stowage node fence', () => {
  const taints = async () => ((await readNode('a')).spec?.taints ?? []).map(({ key }: { key: string }) => key)

  it('PLUS-11 rejects a node that is ready or whose machine may be on', async () => {
    expect(await run('fence', 'a', '--confirm-off')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Power the machine off first.'),
    })
    await setReady('a', 'Unknown')
    expect(await run('fence', 'a')).toMatchObject({ code: 2, err: expect.stringContaining('--confirm-off') })
    expect(await taints()).toEqual([])
  })

  it('PLUS-11 taints the node until it has returned and unmounted the volumes of removed pods', async () => {
    await createVolume('shared')
    await setReady('a', 'Unknown')
    expect((await run('fence', 'a', '--confirm-off', '--dry-run')).out).toContain('would be out of service')
    expect(await taints()).toEqual([])
    expect((await run('fence', 'a', '--confirm-off')).code).toBe(0)
    expect(await taints()).toEqual(['node.kubernetes.io/out-of-service'])
    expect(await run('unfence', 'a')).toMatchObject({ code: 2, err: expect.stringContaining('is ready') })
    const volumesInUse = [`kubernetes.io/csi/${DRIVER}^shared`]
    await setReady('a', 'True', { volumesInUse })
    expect(await run('unfence', 'a')).toMatchObject({ code: 2, err: expect.stringContaining(volumesInUse[0]!) })
    await setReady('a', 'True', { volumesInUse: null })
    expect((await run('unfence', 'a')).out).toBe('Node a is back in service.\n')
    expect(await taints()).toEqual([])
  })
})

describe('stowage node forget', () => {
  beforeEach(async () => {
    await createVolume('only-a', 'a')
    await createVolume('shared')
    await createPod('web-0', { claim: 'only-a' })
    await post('/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities', {
      metadata: { name: 'of-a' },
      storageClassName: 'local',
      nodeTopology: { matchLabels: { 'kubernetes.io/hostname': 'a' } },
    })
    await post('/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities', {
      metadata: { name: 'of-all' },
      storageClassName: 'local',
      nodeTopology: {},
    })
  })

  it('PLUS-11 shows everything of the node in a dry run, and refuses to remove a node that is ready', async () => {
    const plan =
      'To be removed:\n  Node a\n  CSINode a\n  Pod default/web-0\n  CSIStorageCapacity default/of-a\n' +
      'To be kept, although no other node can reach them (remove them with --delete-volumes):\n' +
      '  PersistentVolume only-a (1Gi, claim default/only-a)\n'
    const reason =
      'Node "a" reports that it is ready, so its pods run and can write to their volumes. Power the machine off first.'
    expect(await run('forget', 'a', '--dry-run')).toEqual({
      code: 2,
      out: `${plan}Without --dry-run, nothing would be removed. ${reason}\n`,
      err: '',
    })
    const { code, out } = await run('forget', 'a', '--dry-run', '--output', 'json')
    expect({ code, json: JSON.parse(out) }).toMatchObject({ code: 2, json: { node: 'a', isDryRun: true, reason } })
    expect(await run('forget', 'a', '--yes')).toMatchObject({ code: 2, err: expect.stringContaining(reason) })
    await setReady('a', 'Unknown')
    expect(await run('forget', 'a', '--dry-run')).toEqual({ code: 0, out: plan, err: '' })
    expect(await run('forget', 'a')).toMatchObject({ code: 2, err: expect.stringContaining('confirm with --yes') })
    expect(await readNames('/api/v1/nodes')).toEqual(['a', 'b'])
  })

  it('PLUS-11 removes the node and its objects, and keeps its volumes without --delete-volumes', async () => {
    await setReady('a', 'Unknown')
    expect(await run('forget', 'a', '--yes')).toMatchObject({
      code: 0,
      out: expect.stringContaining('Its volumes are kept'),
    })
    expect(await readNames('/api/v1/nodes')).toEqual(['b'])
    expect(await readNames(`${STORAGE}/csinodes`)).toEqual(['b'])
    expect(await readNames(PODS)).toEqual([])
    expect(await readNames(`${STORAGE}/csistoragecapacities`)).toEqual(['of-all'])
    expect(await readNames('/api/v1/persistentvolumes')).toEqual(['only-a', 'shared'])
  })

  it('PLUS-11 removes the volumes that existed on the node only, with --delete-volumes', async () => {
    await setReady('a', 'Unknown')
    expect(await run('forget', 'a', '--yes', '--delete-volumes')).toMatchObject({
      code: 0,
      out: expect.stringContaining('LOSES DATA'),
    })
    expect(await readNames('/api/v1/persistentvolumes')).toEqual(['shared'])
  })

  it('PLUS-11 keeps the node until its volumes are detached', async () => {
    await setReady('a', 'Unknown')
    await post(`${STORAGE}/volumeattachments`, {
      metadata: { name: 'va', finalizers: ['example.com/attacher'] },
      spec: { attacher: DRIVER, nodeName: 'a', source: { persistentVolumeName: 'shared' } },
    })
    expect(await run('forget', 'a', '--yes', '--timeout', '0s')).toMatchObject({
      code: 1,
      out: expect.stringContaining('Node a is kept until its drivers have detached va.'),
    })
    expect((await readNode('a')).spec.taints).toMatchObject([{ key: 'node.kubernetes.io/out-of-service' }])
    await patch(`${STORAGE}/volumeattachments/va`, { metadata: { finalizers: null } })
    expect((await run('forget', 'a', '--yes')).code).toBe(0)
  })
})
