// Tests `stowage reset` on servers whose pods run processes on mounted volumes: it leaves nothing on the machine, no matter when
// the server was killed, and keeps retained volumes. SCALE=100, as in `npm run prove`, kills 50 servers.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, chown, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { detectLimits } from '../src/host/limits/open-limits.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { buildProgram } from './helpers/build-program.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { seededRandom } from './helpers/random.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { seedFrom } from './helpers/seed.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const run = promisify(execFile)
const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const ROUNDS = process.env.SCALE === '100' ? 50 : 2
/** The longest time from the first request, or in every other round from a pod's first process, to the kill. */
const LOAD_MS_MAX = 4_000
const CALLERS = 4
/** The longest time from the start of a reset to its kill. */
const RESET_MS_MAX = 4_000

const USER_ID = 65_534
/** Whether a user without root may create the namespaces in which the commands of its pods run. */
const canUnshare = await run('unshare', ['--user', '--map-root-user', '--mount', 'true'], {
  uid: USER_ID,
  gid: USER_ID,
}).then(
  () => true,
  () => false,
)

const CORE = '/api/v1/namespaces/default'
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' }

let parent: string
let dataDir: string
let leftovers: HostLeftovers
const servers: RunningServer[] = []
/** The number of seconds that the commands of pods sleep. The test finds their processes by this number. */
let sleepSeconds = ''

beforeEach(async () => {
  parent = await realpath(await mkdtemp(join(tmpdir(), 'stowage-reset-')))
  dataDir = join(parent, 'data')
  leftovers = await findLeftoversBelow(parent)
  sleepSeconds = String(10 ** 9 + process.pid)
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill().catch(() => {})
  for (const pid of await findPodProcesses()) process.kill(pid, 'SIGKILL')
  await leftovers.remove()
  await rm(parent, { recursive: true, force: true })
})

async function start(options: Partial<Parameters<typeof startServer>[0]> = {}): Promise<RunningServer> {
  const server = await startServer({
    dataDir,
    nodes: 2,
    flags: ['--run-commands', '--pool-size', '4Gi', '--log-level', 'error'],
    skipsNodeReadiness: true,
    ...options,
  })
  servers.push(server)
  return server
}

const reset = (...flags: string[]) => runStowage('reset', '--data-dir', dataDir, '--yes', ...flags)

/** Starts a reset and kills it after this time. */
async function interruptReset(ms: number): Promise<void> {
  const child = spawn(process.execPath, [await buildProgram(), 'reset', '--data-dir', dataDir, '--yes'])
  const exit = once(child, 'exit')
  await Promise.race([exit, pause(ms)])
  child.kill('SIGKILL')
  await exit
}

async function create(server: RunningServer, name: string): Promise<void> {
  await server.call('POST', `${CORE}/persistentvolumeclaims`, {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '300Mi' } } },
  })
  const command = ['sh', '-c', `echo ${name} > /data/name; sleep ${sleepSeconds} & exec sleep ${sleepSeconds}`]
  await server.call('POST', `${CORE}/pods`, {
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'none', command, volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    },
  })
}

async function waitUntilRunning(server: RunningServer, name: string): Promise<void> {
  while ((await server.call('GET', `${CORE}/pods/${name}`)).json.status?.phase !== 'Running') await pause(100)
}

/** Returns everything that a reset has left on the machine. */
async function findLeftovers(podUids: readonly string[]): Promise<string[]> {
  const limits = await detectLimits()
  const cgroups = limits.version === 'none' ? [] : await readdir(join(limits.root, 'stowage-pods')).catch(() => [])
  return [
    ...(await leftovers.list()),
    ...(await findPodProcesses()).map((pid) => `process ${pid}`),
    ...cgroups.filter((name) => podUids.some((uid) => name === `pod${uid}`)),
    ...(await readdir(parent)),
  ]
}

/** Returns the commands of pods, and the processes of the server with a file of a node as argument. */
const findPodProcesses = () =>
  findProcesses((args) => args.includes(sleepSeconds) || args.some((text) => text.startsWith(`${dataDir}/nodes/`)))

const hasSleepingPod = async (): Promise<boolean> =>
  (await findProcesses((args) => args.includes(sleepSeconds) && args.length === 2)).length > 0

async function findProcesses(isMatch: (args: readonly string[]) => boolean): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const matchingPids = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      return isMatch(text.split('\0').slice(0, -1)) ? [Number(pid)] : []
    }),
  )
  return matchingPids.flat()
}

const listPodUids = async (): Promise<string[]> => {
  const nodes = await readdir(join(dataDir, 'nodes')).catch(() => [])
  const uids = await Promise.all(
    nodes.map((node) => readdir(join(dataDir, 'nodes', node, 'agent', 'pods')).catch(() => [])),
  )
  return uids.flat()
}

describe.skipIf(skipMessage)(`stowage reset${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  it(`SYS-25 leaves nothing after SIGKILL of the server, and of every other reset, at ${ROUNDS} random moments under load`, async () => {
    const seed = seedFrom('RESET_SEED')
    const random = seededRandom(seed)
    let roundsWithPods = 0
    const totals = { processes: 0, mounts: 0, loopDevices: 0, volumes: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      const server = await start()
      let isKilled = false
      const callers = Array.from({ length: CALLERS }, async (_, caller) => {
        for (let index = 0; !isKilled; index++) {
          const name = `pod-${caller}-${index}`
          await create(server, name).catch(() => {})
          await pause(random() * 500)
          if (random() < 0.4) {
            await server.call('DELETE', `${CORE}/pods/${name}`).catch(() => {})
            await server.call('DELETE', `${CORE}/persistentvolumeclaims/${name}`).catch(() => {})
          }
        }
      })
      // Odd rounds wait for the first process of a pod. In even rounds, the kill hits the start of the nodes and their first volumes.
      while (round % 2 === 1 && !(await hasSleepingPod())) await pause(50)
      await pause(random() * LOAD_MS_MAX)
      isKilled = true
      await server.kill()
      servers.pop()
      await Promise.all(callers)
      const podUids = await listPodUids()
      const hadPods = (await leftovers.list()).length > 0 && (await hasSleepingPod())
      if (round % 2 === 1) await interruptReset(random() * RESET_MS_MAX)
      const { code, stdout, stderr } = await reset('-o', 'json')
      const context = `seed ${seed}, round ${round}`
      expect([code, stderr], context).toEqual([0, ''])
      const result = JSON.parse(stdout)
      expect(result.keptVolumes, context).toEqual([])
      expect(await findLeftovers(podUids), context).toEqual([])
      totals.volumes += result.deletedVolumes.length
      for (const key of ['processes', 'mounts', 'loopDevices'] as const) totals[key] += result[key]
      roundsWithPods += hadPods ? 1 : 0
      if (ROUNDS > 2) console.log(`reset: ${context} passed`)
    }
    console.log(`reset: seed ${seed}, ${ROUNDS} kills, released and deleted ${JSON.stringify(totals)}; nothing left`)
    expect(roundsWithPods).toBeGreaterThan(0)
  }, 3_600_000)

  it('SYS-25 keeps retained volumes, and does not delete below mounts of other programs', async () => {
    const server = await start()
    for (const name of ['kept', 'deleted']) await create(server, name)
    for (const name of ['kept', 'deleted']) await waitUntilRunning(server, name)
    const { volumeName } = (await server.call('GET', `${CORE}/persistentvolumeclaims/kept`)).json.spec
    const volumePath = `/api/v1/persistentvolumes/${volumeName}`
    const retain = { spec: { persistentVolumeReclaimPolicy: 'Retain' } }
    expect((await server.call('PATCH', volumePath, retain, MERGE_PATCH)).status).toBe(200)

    const plan = await reset('--dry-run', '-o', 'json')
    expect(JSON.parse(plan.stdout)).toMatchObject({
      serverPid: server.pid,
      deletedVolumes: [{ claim: 'default/deleted' }],
      keptVolumes: [{ name: volumeName, claim: 'default/kept', keepReason: 'reclaim policy Retain' }],
    })
    const [{ path }] = JSON.parse(plan.stdout).keptVolumes
    const unconfirmedResult = await runStowage('reset', '--data-dir', dataDir)
    expect([unconfirmedResult.code, unconfirmedResult.stdout]).toEqual([
      2,
      expect.stringContaining(`stop the server (pid ${server.pid})`),
    ])

    await run('mount', ['-t', 'tmpfs', 'tmpfs', join(dataDir, 'volumes')])
    expect(await reset()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`tmpfs is mounted at ${dataDir}/volumes, but Stowage has not mounted it.`),
    })
    expect((await server.call('GET', '/readyz')).status).toBe(200)
    await run('umount', [join(dataDir, 'volumes')])

    const podUids = await listPodUids()
    const result = await reset()
    expect([result.code, result.stderr]).toEqual([0, ''])
    expect(result.stdout).toContain(`stopped the server (pid ${server.pid})`)
    servers.pop()
    expect(await findLeftovers(podUids)).toEqual(['data'])
    expect(await listPaths(dataDir)).toEqual(expect.arrayContaining([path]))
    expect((await listPaths(dataDir)).filter((file) => file.endsWith('.img'))).toEqual([path])
    await run('mount', ['-o', 'loop,ro', path, await makeDirectory('mounted')])
    expect(await readFile(join(parent, 'mounted', 'name'), 'utf8')).toBe('kept\n')
    await run('umount', [join(parent, 'mounted')])
    await rm(join(parent, 'mounted'), { recursive: true })

    await reset() // there is no longer a store, so the volume is kept again
    await access(path)
    expect((await reset('--including-retained')).code).toBe(0)
    expect(await findLeftovers(podUids)).toEqual([])
    expect((await reset()).stdout).toBe(`There is nothing to reset in ${dataDir}.\n`)
  })

  it('SYS-25 plans to keep volumes if the store is damaged, and cleans up after rm -rf', async () => {
    const server = await start()
    await create(server, 'any')
    await waitUntilRunning(server, 'any')
    await server.kill()
    servers.pop()
    const podUids = await listPodUids()
    await writeFile(join(dataDir, 'store', 'store.mdb'), 'not a store')
    const { stdout } = await reset('--dry-run', '-o', 'json')
    expect(JSON.parse(stdout).keptVolumes).toMatchObject([
      { keepReason: expect.stringMatching(/^the store cannot be read: .*store\.mdb/) },
    ])
    await run('rm', ['-rf', dataDir]).catch(() => {}) // fails at the mount points
    expect(await findPodProcesses()).not.toEqual([])
    expect(await reset()).toMatchObject({ code: 0 })
    expect(await findLeftovers(podUids)).toEqual([])
  })

  it.skipIf(!canUnshare && !process.env.CI)(
    'SYS-25 leaves the empty data directory of a server without root, and nothing else',
    async () => {
      await mkdir(dataDir)
      await Promise.all([chmod(parent, 0o755), chown(dataDir, USER_ID, USER_ID)])
      const server = await start({ uid: USER_ID })
      await create(server, 'unprivileged')
      while (!(await hasSleepingPod())) await pause(50)
      await server.kill()
      servers.pop()
      const args = [await buildProgram(), 'reset', '--data-dir', dataDir, '--yes']
      await run(process.execPath, args, { uid: USER_ID, gid: USER_ID, cwd: '/' })
      // Its parent belongs to root, so the empty directory stays.
      expect(await findLeftovers([])).toEqual(['data'])
      expect(await readdir(dataDir)).toEqual([])
    },
  )

  it('SYS-25 deletes nothing in a directory that is not a data directory', async () => {
    await mkdir(join(dataDir, 'volumes'), { recursive: true })
    await writeFile(join(dataDir, 'volumes', 'photo'), '')
    expect(await reset()).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a data directory') })
    await access(join(dataDir, 'volumes', 'photo'))
  })
})

async function makeDirectory(name: string): Promise<string> {
  await mkdir(join(parent, name))
  return join(parent, name)
}

const listPaths = async (dir: string): Promise<string[]> =>
  (await readdir(dir, { recursive: true })).map((name) => join(dir, name))

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
