// Measures the memory of `stowage up`. Anonymous memory (heap, stacks, buffers) and mapped files are reported separately.
//   churn      claims are provisioned and deleted at a constant rate, and then the server is idle
//   burst      claims are provisioned at once and stay, and then the server is idle
//   watchers   many clients watch an idle server
//
// For churn, the memory after the load is compared with that of two idle servers: the same server after its start, when it has
// not yet compiled the code that handles claims, and a second one that has provisioned and deleted a few claims and has been
// idle since.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import type { ChurnJob, ChurnResult } from './lib/churn-role.ts'
import { buildClaim } from './lib/claims.ts'
import type { Figure } from './lib/figure.ts'
import type { Connection, Endpoint } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, openAll, type RequestText } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { type Memory, startFakeDriver, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const CLAIMS_PER_SECOND = 100
const LIFETIME_MS = 2_000
const CLIENTS = 16
/**
 * A short soak shows the level of the first minutes, a long one whether memory levels off. Both are idle until the server has
 * collected its garbage twice, the second time after more than six minutes.
 */
const MINUTES = { short: { load: 3, idle: 8 }, long: { load: 30, idle: 10 } }
/** The load of the second server. */
const WARM_UP = { perSecond: 20, seconds: 10 }
const SETTLE_MS = 10_000
const SAMPLE_MS = 5_000
const PROGRESS_SAMPLES = 12
const LOADED_MB_MAX = 250
/** The idle memory before the load compared with the idle memory after it. */
const IDLE_RATIO_MIN = 1 / 1.5

const BURST = { claims: 5_000, clients: 64, idleSeconds: 60 }
const WATCHERS = { count: 1_000, idleSeconds: 60 }
/** Of all watchers together, in addition to the server's own memory. */
const WATCHERS_MB_MAX = 100

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'churn'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

export const soakSuite: Suite = {
  isOptional: true,
  parts: { churn: measureChurn, burst: measureBurst, watchers: measureWatchers },
}

async function measureChurn({ dir, profileDir, isLong, progress, note }: PartOptions): Promise<Figure[]> {
  const minutes = isLong ? MINUTES.long : MINUTES.short
  const server = await startChurnServer(join(dir, 'loaded'), profileDir)
  const warmServer = await startChurnServer(join(dir, 'warm'), undefined)
  try {
    await sleep(SETTLE_MS)
    const idle = server.memory()
    progress(`idle: ${memoryText(idle)}`)
    await warmServer.churn(WARM_UP.perSecond, WARM_UP.seconds)
    const load = server.churn(CLAIMS_PER_SECOND, minutes.load * 60)
    const loaded = await sampleUntil(load, server.memory, progress)
    const { created, seconds } = await load
    note(`${formatCount(created)} claims were created and deleted, ${Math.round(created / seconds)} per second.`)
    const idleSamples = await sampleUntil(sleep(minutes.idle * 60_000), server.memory, progress)
    return figuresOf({ idle, warmIdle: warmServer.memory(), loaded, after: idleSamples.at(-1)! }, minutes)
  } finally {
    await server.stop()
    await warmServer.stop()
  }
}

async function measureBurst({ dir, profileDir, progress, note }: PartOptions): Promise<Figure[]> {
  const server = await startChurnServer(dir, profileDir)
  try {
    await sleep(SETTLE_MS)
    const idle = server.memory()
    progress(`idle: ${memoryText(idle)}`)
    const { seconds } = await server.burst(BURST.claims)
    progress(`after the burst: ${memoryText(server.memory())}`)
    note(`${formatCount(BURST.claims)} claims were bound in ${Math.round(seconds)} s.`)
    await sleep(BURST.idleSeconds * 1_000)
    const after = server.memory()
    const name = `${BURST.idleSeconds} s after a burst of ${formatCount(BURST.claims)} claims`
    return [
      {
        name: `${name}: resident memory`,
        unit: 'MB',
        value: residentOf(after),
        limit: { value: residentOf(idle), of: 'idle before the burst' },
        target: { ratioMin: IDLE_RATIO_MIN },
      },
      {
        name: `${name}: anonymous memory`,
        unit: 'MB',
        value: after.anonymousMb,
        limit: { value: idle.anonymousMb, of: 'idle before the burst' },
      },
    ]
  } finally {
    await server.stop()
  }
}

const residentOf = ({ anonymousMb, mappedMb }: Memory): number => anonymousMb + mappedMb

async function measureWatchers({ dir, profileDir, progress }: PartOptions): Promise<Figure[]> {
  const server = await startChurnServer(dir, profileDir)
  try {
    await sleep(SETTLE_MS)
    const idle = server.memory()
    progress(`idle: ${memoryText(idle)}`)
    const watch = numberedRequest({ method: 'GET', path: `${CLAIMS}?watch=1&allowWatchBookmarks=true` })(0)
    let failure: Error | undefined
    const watchers: Connection[] = []
    while (watchers.length < WATCHERS.count) {
      const [watcher] = await openAll(server.endpoint, 1, (error) => {
        failure ??= error
      })
      await watcher!.follow(watch, () => {})
      watchers.push(watcher!)
    }
    await sleep(WATCHERS.idleSeconds * 1_000)
    const watched = server.memory()
    for (const watcher of watchers) watcher.close()
    if (failure) throw failure
    const name = `${formatCount(WATCHERS.count)} idle watchers: anonymous memory`
    return [
      {
        name,
        unit: 'MB',
        value: watched.anonymousMb,
        limit: { value: idle.anonymousMb, of: 'without watchers' },
      },
      {
        name: `${name}, above that without watchers`,
        unit: 'MB',
        value: watched.anonymousMb - idle.anonymousMb,
        target: { valueMax: WATCHERS_MB_MAX },
      },
    ]
  } finally {
    await server.stop()
  }
}

interface ChurnServer {
  readonly endpoint: Endpoint
  memory(): Memory
  churn(perSecond: number, seconds: number): Promise<ChurnResult>
  /** Resolves when this many claims are bound. */
  burst(count: number): Promise<BurstResult>
  stop(): Promise<void>
}

async function startChurnServer(dir: string, profileDir: string | undefined): Promise<ChurnServer> {
  await mkdir(dir, { recursive: true })
  const socket = join(dir, 'csi.sock')
  const dataDir = join(dir, 'data')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir })
  const server = await startServer({ dataDir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  const role = startRole<ChurnJob, ChurnResult>('churn')
  const burstRole = startRole<BurstJob, BurstResult>('burst')
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  await post(endpoint, '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: CLASS }, provisioner: DRIVER })
  const claim = buildClaim(`claim-${NUMBER}`)
  const create: RequestText = {
    method: 'POST',
    path: CLAIMS,
    body: JSON.stringify({ ...claim, spec: { ...claim.spec, storageClassName: CLASS } }),
  }
  return {
    endpoint,
    memory: server.memory,
    churn: (perSecond, seconds) =>
      role.run({
        endpoint,
        clients: CLIENTS,
        perSecond,
        seconds,
        lifetimeMs: LIFETIME_MS,
        create,
        remove: { method: 'DELETE', path: `${CLAIMS}/claim-${NUMBER}` },
      }),
    burst: (count) =>
      burstRole.run({
        endpoint,
        clients: BURST.clients,
        count,
        after: 0,
        request: create,
        watch: { method: 'GET', path: `${CLAIMS}?watch=1` },
        until: '"phase":"Bound"',
      }),
    async stop() {
      role.stop()
      burstRole.stop()
      await server.stop()
      await driver.stop()
    },
  }
}

/** Returns samples of the memory at regular intervals until the promise settles, the last one when it does. */
async function sampleUntil(
  end: Promise<unknown>,
  memory: () => Memory,
  progress: PartOptions['progress'],
): Promise<Memory[]> {
  const samples: Memory[] = []
  let isEnded = false
  const ended = end.finally(() => {
    isEnded = true
  })
  while (!isEnded) {
    await Promise.race([ended, sleep(SAMPLE_MS)])
    samples.push(memory())
    if (samples.length % PROGRESS_SAMPLES === 0) progress(memoryText(samples.at(-1)!))
  }
  return samples
}

const memoryText = ({ anonymousMb, mappedMb }: Memory): string =>
  `${Math.round(anonymousMb)} MB anonymous, ${Math.round(mappedMb)} MB mapped`

interface Soak {
  readonly idle: Memory
  readonly warmIdle: Memory
  readonly loaded: readonly Memory[]
  readonly after: Memory
}

function figuresOf({ idle, warmIdle, loaded, after }: Soak, minutes: { load: number; idle: number }): Figure[] {
  const name = `${CLAIMS_PER_SECOND} claims created and deleted per second for ${minutes.load} minutes`
  const idleName = `${minutes.idle} minutes after the load`
  return [
    {
      name: `${name}: anonymous memory, most`,
      unit: 'MB',
      value: Math.max(...loaded.map(({ anonymousMb }) => anonymousMb)),
      limit: { value: idle.anonymousMb, of: 'idle before the load' },
      target: { valueMax: LOADED_MB_MAX },
    },
    {
      name: `${name}: mapped memory, most`,
      unit: 'MB',
      value: Math.max(...loaded.map(({ mappedMb }) => mappedMb)),
      limit: { value: idle.mappedMb, of: 'idle before the load' },
    },
    {
      name: `${idleName}: anonymous memory`,
      unit: 'MB',
      value: after.anonymousMb,
      limit: { value: idle.anonymousMb, of: 'idle before the load' },
      target: { ratioMin: IDLE_RATIO_MIN },
    },
    {
      name: `${idleName}: anonymous memory, compared with a server that has provisioned a few claims`,
      unit: 'MB',
      value: after.anonymousMb,
      limit: { value: warmIdle.anonymousMb, of: `idle after ${WARM_UP.perSecond * WARM_UP.seconds} claims` },
      target: { ratioMin: IDLE_RATIO_MIN },
    },
    {
      name: `${idleName}: mapped memory`,
      unit: 'MB',
      value: after.mappedMb,
      limit: { value: idle.mappedMb, of: 'idle before the load' },
    },
  ]
}
