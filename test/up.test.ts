// Tests the start and stop of `stowage up`.
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createDaemon } from './helpers/daemon.ts'
import { startFakeDriver } from './helpers/fake-driver.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type RunningServer, type ServerOptions, startServer } from './helpers/server.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const STORAGE = '/apis/storage.k8s.io/v1'
const CORE = '/api/v1/namespaces/default'
/** Bound of the time to stop, longer than the server waits for its components. */
const STOP_MS_MAX = 15_000

let dir: string
let leftovers: HostLeftovers
const servers = new Set<RunningServer>()
const start = async (options: Omit<ServerOptions, 'dataDir'> = {}) => {
  const server = await startServer({ dataDir: join(dir, 'data'), ...options })
  servers.add(server)
  return server
}
beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-up-')))
  leftovers = await findLeftoversBelow(dir)
})
afterEach(async () => {
  for (const server of servers) await server.kill().catch(() => {})
  servers.clear()
  await leftovers.remove()
  await rm(dir, { recursive: true, force: true })
})

describe('start', () => {
  it('SYS-1 without flags runs three nodes, with the default class `local` and the class `directory`', async () => {
    const server = await start({ nodes: 'default' })
    expect(server.nodes).toMatchObject({ names: ['node-1', 'node-2', 'node-3'] })
    expect(server.nodes!.poolBytes).toBeGreaterThan(0)
    expect(server.nodes!.poolBytes).toBeLessThanOrEqual(10 * 1024 ** 3)
    expect(await listClasses(server)).toEqual({ directory: undefined, local: 'true' })
    const { spec } = (await server.call('GET', `${STORAGE}/csidrivers/local.csi.stowage.dev`)).json
    expect(spec).toMatchObject({ attachRequired: false, storageCapacity: true })
  })

  it('SYS-1 serves the API before the nodes are ready', async () => {
    const server = await start({ nodes: 'default', skipsNodeReadiness: true })
    expect((await server.call('GET', '/readyz')).text).toBe('ok')
    await pollUntil(async () => (await listReadyNodes(server)).length === 3)
  })

  it('CAP-19 with --no-scheduler leaves pods to another scheduler', async () => {
    const hasAttempts = async (server: RunningServer) =>
      /^scheduler_schedule_attempts_total\{.*\} [1-9]/m.test((await server.call('GET', '/metrics')).text)
    const getPod = async (server: RunningServer, name: string) =>
      (await server.call('GET', `${CORE}/pods/${name}`)).json as { spec: { nodeName?: string }; status: object }
    const postPod = (server: RunningServer, name: string) =>
      server.call('POST', `${CORE}/pods`, {
        metadata: { name },
        spec: { containers: [{ name: 'app', image: 'app' }] },
      })
    const serverWithScheduler = await start()
    await postPod(serverWithScheduler, 'first')
    await pollUntil(() => hasAttempts(serverWithScheduler))
    await serverWithScheduler.stop()

    const server = await start({ flags: ['--no-scheduler'] })
    await postPod(server, 'second')
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
    await server.call('POST', `${CORE}/persistentvolumeclaims`, { metadata: { name: 'data' }, spec })
    const getClaimPhase = async () =>
      (await server.call('GET', `${CORE}/persistentvolumeclaims/data`)).json.status?.phase
    await pollUntil(async () => (await getClaimPhase()) === 'Bound') // the other controllers run
    const { spec: podSpec, status } = await getPod(server, 'second')
    expect(podSpec.nodeName).toBeUndefined()
    expect(JSON.stringify(status)).not.toContain('PodScheduled')
    expect(await hasAttempts(server)).toBe(false)
  })

  it('SYS-1 with --nodes 0 runs no nodes, and `directory` is the default class', async () => {
    const server = await start()
    expect(await listClasses(server)).toEqual({ directory: 'true' })
    expect((await server.call('GET', '/api/v1/nodes')).json.items).toEqual([])
    expect((await readdir(server.dataDir)).includes('nodes')).toBe(false)
  })

  it('SYS-1 creates the class of nodes that are added later only once, and keeps the existing default', async () => {
    await (await start()).stop()
    const restartedServer = await start({ nodes: 1 })
    expect(await listClasses(restartedServer)).toEqual({ directory: 'true', local: undefined })
    await restartedServer.call('DELETE', `${STORAGE}/storageclasses/local`)
    await restartedServer.stop()
    expect(await listClasses(await start({ nodes: 1 }))).toEqual({ directory: 'true' })
  })

  it('SYS-1 SYS-7 with fewer nodes than before reports the idle nodes, and schedules no pod to them', async () => {
    await (await start({ nodes: 3, flags: ['--pool-size', '2Gi'] })).stop()
    const restartedServer = await start({ nodes: 1, flags: ['--pool-size', '2Gi'] })
    expect(restartedServer.nodes).toMatchObject({ names: ['node-1'], idle: ['node-2', 'node-3'] })
    expect(await listReadyNodes(restartedServer)).toEqual(['node-1'])
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) await runPod(restartedServer, name)
    await deletePods(restartedServer, names)
    await restartedServer.stop()
    const allNodes = await start({ nodes: 3, flags: ['--pool-size', '2Gi'] })
    expect(allNodes.nodes).toMatchObject({ idle: [] })
    await pollUntil(async () => (await listReadyNodes(allNodes)).length === 3)
  })

  it('SYS-1 uses directories as volumes on a machine whose mkfs fails, and reports the reason once', async () => {
    const bin = join(dir, 'bin')
    await mkdir(bin)
    for (const name of ['mkfs.xfs', 'mkfs.ext4']) {
      await writeFile(join(bin, name), '#!/bin/sh\necho "not supported" >&2\nexit 1\n')
      await chmod(join(bin, name), 0o755)
    }
    const server = await start({ nodes: 'default', env: { PATH: `${bin}:${process.env.PATH}` } })
    expect(server.nodes).toMatchObject({ backend: 'directory' })
    await runPod(server, 'shop')
    await pollUntil(async () => server.log().includes('not supported'))
    const warnings = server
      .log()
      .split('\n')
      .flatMap((line) => (line.includes('"level":"warn"') ? [JSON.parse(line).msg as string] : []))
    expect(new Set(warnings).size).toBe(warnings.length)
    expect(await server.stop()).toBe(0)
  })

  it('SYS-1 exits with the reason if a node cannot start', async () => {
    await mkdir(join(dir, 'data'), { mode: 0o700 })
    await writeFile(join(dir, 'data', 'nodes'), 'not a directory')
    await expect(start({ nodes: 1 })).rejects.toThrow(/data\/nodes/)
  })
})

describe('stop', () => {
  it('SYS-1 completes while the nodes are starting, and removes their mounts and devices', async () => {
    const server = await start({ nodes: 'default', skipsNodeReadiness: true })
    expect(await stopInTime(server)).toBe(0)
    expect(await leftovers.list()).toEqual([])
    expect((await start({ nodes: 'default' })).nodes!.names).toHaveLength(3)
  })

  it('SYS-1 SYS-7 completes while volumes are created and mounted, and the next start resumes', async () => {
    const server = await start({ nodes: 'default', flags: ['--pool-size', '2Gi'] })
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const name of names) await createPod(server, name)
    await pollUntil(async () => (await leftovers.list()).length > 0 || server.nodes!.backend !== 'loop')
    expect(await stopInTime(server)).toBe(0)
    const restartedServer = await start({ nodes: 'default', flags: ['--pool-size', '2Gi'] })
    for (const name of names) await waitUntilRunning(restartedServer, name)
    await deletePods(restartedServer, names)
    expect(await stopInTime(restartedServer)).toBe(0)
    expect(await leftovers.list()).toEqual([])
  })

  it('SYS-1 completes while a CSI driver does not respond', async () => {
    const driver = await startFakeDriver({ flags: ['--name', 'slow.example'] })
    try {
      await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
      const server = await start({ flags: ['--driver-socket', driver.endpoint] })
      await server.call('POST', `${STORAGE}/storageclasses`, {
        metadata: { name: 'slow' },
        provisioner: 'slow.example',
      })
      await server.call('POST', `${CORE}/persistentvolumeclaims`, aClaim('waits', { storageClassName: 'slow' }))
      await pollUntil(async () =>
        (await driver.control.inspect()).calls.some(({ method }) => method === 'CreateVolume'),
      )
      expect(await stopInTime(server)).toBe(0)
    } finally {
      await driver.remove()
    }
  })

  it('SYS-1 SYS-7 of `stowage node` completes while its driver does not respond', async () => {
    const driver = await startFakeDriver({ flags: ['--name', 'slow.example'] })
    try {
      await driver.control.setRules([{ method: 'NodeStageVolume', effect: { do: 'hang' } }])
      const server = await start({ flags: ['--driver-socket', driver.endpoint] })
      const spec = { attachRequired: false }
      await server.call('POST', `${STORAGE}/csidrivers`, { metadata: { name: 'slow.example' }, spec })
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
      const metadata = { name: 'slow', annotations }
      await server.call('DELETE', `${STORAGE}/storageclasses/directory`)
      await server.call('POST', `${STORAGE}/storageclasses`, { metadata, provisioner: 'slow.example' })
      const node = await createDaemon({
        name: 'node',
        args: [
          ...['node', '--kubeconfig', server.kubeconfig, '--node-name', 'node-1', '--root-dir', join(dir, 'agent')],
          ...['--driver-socket', driver.endpoint.replace('unix://', '')],
        ],
      })
      await node.start()
      await createPod(server, 'waits')
      await pollUntil(async () =>
        (await driver.control.inspect()).calls.some(({ method }) => method === 'NodeStageVolume'),
      )
      const startMs = performance.now()
      await node.stop()
      expect(performance.now() - startMs).toBeLessThan(STOP_MS_MAX)
      expect(node.log()).toContain('volumes stay mounted')
    } finally {
      await driver.remove()
    }
  })

  it.skipIf(skipMessage)('SYS-1 completes while mkfs hangs, and keeps existing mounts', async () => {
    const { bin, hang, release } = await createHangingMkfs()
    const server = await start({
      nodes: 'default',
      flags: ['--pool-size', '2Gi'],
      env: { PATH: `${bin}:${process.env.PATH}` },
    })
    await runPod(server, 'before')
    const mounts = (await leftovers.list()).filter((line) => line.includes(' at '))
    expect(mounts).not.toEqual([])
    await hang()
    try {
      await createPod(server, 'stuck')
      await pollUntil(async () => (await readdir(join(dir, 'hanging'))).length > 0)
      expect(await stopInTime(server)).toBe(0)
      expect((await leftovers.list()).filter((line) => line.includes(' at '))).toEqual(expect.arrayContaining(mounts))
    } finally {
      await release()
    }
    const restartedServer = await start({ nodes: 'default', flags: ['--pool-size', '2Gi'] })
    await waitUntilRunning(restartedServer, 'stuck')
    await deletePods(restartedServer, ['before', 'stuck'])
    expect(await stopInTime(restartedServer)).toBe(0)
    expect(await leftovers.list()).toEqual([])
  })
})

/** Stops the server, expects it to exit in time, and returns the exit code. */
async function stopInTime(server: RunningServer): Promise<number | null> {
  const startMs = performance.now()
  const code = await server.stop()
  expect(performance.now() - startMs).toBeLessThan(STOP_MS_MAX)
  return code
}

/** Returns the default-class annotation of each class. */
async function listClasses(server: RunningServer): Promise<Record<string, string | undefined>> {
  const { items } = (await server.call('GET', `${STORAGE}/storageclasses`)).json
  const annotation = 'storageclass.kubernetes.io/is-default-class'
  return Object.fromEntries(items.map(({ metadata }: any) => [metadata.name, metadata.annotations?.[annotation]]))
}

async function listReadyNodes(server: RunningServer): Promise<string[]> {
  const { items } = (await server.call('GET', '/api/v1/nodes')).json
  return items
    .filter(({ status }: any) =>
      status.conditions.some(({ type, status: is }: any) => type === 'Ready' && is === 'True'),
    )
    .map(({ metadata }: any) => metadata.name)
}

const aClaim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '310Mi' } }, ...spec },
})

async function createPod(server: RunningServer, name: string): Promise<void> {
  await server.call('POST', `${CORE}/persistentvolumeclaims`, aClaim(name))
  const { status, text } = await server.call('POST', `${CORE}/pods`, {
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    },
  })
  if (status !== 201) throw new Error(text)
}

const waitUntilRunning = (server: RunningServer, name: string) =>
  pollUntil(async () => (await server.call('GET', `${CORE}/pods/${name}`)).json.status?.phase === 'Running')

async function runPod(server: RunningServer, name: string): Promise<void> {
  await createPod(server, name)
  await waitUntilRunning(server, name)
}

async function deletePods(server: RunningServer, names: readonly string[]): Promise<void> {
  for (const kind of ['pods', 'persistentvolumeclaims']) {
    for (const name of names) await server.call('DELETE', `${CORE}/${kind}/${name}`)
  }
  const countObjects = async (path: string) => (await server.call('GET', path)).json.items.length
  await pollUntil(
    async () => (await countObjects(`${CORE}/pods`)) + (await countObjects('/api/v1/persistentvolumes')) === 0,
  )
}

/** Creates mkfs programs that hang while the file `hang` exists. */
async function createHangingMkfs() {
  const bin = join(dir, 'bin')
  const hangingDir = join(dir, 'hanging')
  const flag = join(dir, 'hang')
  await mkdir(bin)
  await mkdir(hangingDir)
  const script = `#!/bin/sh
if [ -e ${flag} ]; then
  touch ${hangingDir}/$$
  while [ -e ${flag} ]; do sleep 0.1; done
  exit 1
fi
PATH=$(echo $PATH | sed 's|${bin}:||') exec $(basename $0) "$@"
`
  for (const name of ['mkfs.xfs', 'mkfs.ext4']) {
    await writeFile(join(bin, name), script)
    await chmod(join(bin, name), 0o755)
  }
  return { bin, hang: () => writeFile(flag, ''), release: () => rm(flag, { force: true }) }
}

/** Polls until the condition is true or the test times out. */
async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
