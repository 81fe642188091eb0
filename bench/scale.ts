// Measures `stowage up` on data directories of different sizes.
//   claims    claims bound to volumes: time to ready, memory, list, start of a watch, binding, compaction
//   capacity  5,000 nodes with ten classes, and a capacity object for each node and class: time to ready, memory
import { mkdir } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { openLmdbStore, type Put } from '../src/store/index.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { boundClaim, boundVolume, buildClaim } from './lib/claims.ts'
import type { Figure, GrowthPoint } from './lib/figure.ts'
import { toTotalGrowthFigure, toUnitGrowthFigure } from './lib/growth.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { createDeferred, NUMBER, numberedRequest, type RequestText } from './lib/load-role.ts'
import { fillCluster } from './lib/local-cluster.ts'
import { startRole } from './lib/role.ts'
import { type ServerProcess, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Numbers of claims, each bound to a volume. */
const SIZES = { short: [1_000, 10_000, 100_000], long: [10_000, 100_000, 1_000_000] }
/** Beyond this number of claims the heap needs more than the limit that Node.js sets by default. */
const DEFAULT_HEAP_CLAIMS_MAX = 300_000
const LARGE_HEAP_FLAG = '--max-old-space-size=16384'
/**
 * A server has settled when it uses less than this share of a processor: its caches are filled, and its controllers have
 * processed every object.
 */
const SETTLED = { share: 0.05, windowMs: 2_000, timeoutMs: 600_000 }
/**
 * A server checks every 30 s whether it is idle. If so, it collects its garbage, and at the next check it returns the freed memory
 * to the operating system.
 */
const COLLECTION_MS = 95_000
const PAIRS_PER_TRANSACTION = 500
const BINDING_BURST = { claims: 1_000, clients: 64, warmUpRounds: 2 }
const REWRITES = { count: 20_000, perTransaction: 200 }
/** As many nodes as Kubernetes supports in one cluster. */
const CLUSTER = { nodes: 5_000, classes: 10, driver: 'pools.csi.stowage.dev', poolBytes: 1024 ** 5 }

/** The metadata of a list is in its first bytes. */
const METADATA_BYTES = 1_024

const NAMESPACE = 'default'
const CLAIMS = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`
const VOLUMES = '/api/v1/persistentvolumes'
/** The labels of the objects that the measurement creates, so that its watches omit all other objects. */
const LABELS = { tier: 'scale' }
const claimKey = (name: string) => `core/persistentvolumeclaims/${NAMESPACE}/${name}`

export const scaleSuite: Suite = {
  isOptional: true,
  parts: { claims: measureClaims, capacity: measureCapacity },
}

async function measureClaims(options: PartOptions): Promise<Figure[]> {
  const sizes: SizeFigures[] = []
  for (const claims of options.isLong ? SIZES.long : SIZES.short) sizes.push(await measureSize(options, claims))
  const points = (read: (figures: SizeFigures) => number): GrowthPoint[] =>
    sizes.map((size) => ({ size: size.claims, ms: read(size) }))
  const growthOf = (of: keyof SizeFigures) => ({ of: 'claims', points: points((figures) => figures[of]) })
  return [
    ...sizes.flatMap(figuresOf),
    toTotalGrowthFigure('time to ready', growthOf('readyMs')),
    toTotalGrowthFigure('processor time until all controllers are idle', growthOf('settledMs')),
    toTotalGrowthFigure('list of all claims', growthOf('listMs')),
    toTotalGrowthFigure('initial events of a watch', growthOf('watchMs')),
    toUnitGrowthFigure('time per bound claim', growthOf('bindMs')),
    toUnitGrowthFigure('processor time per bound claim', growthOf('bindCpuMs')),
    toUnitGrowthFigure('time per write with compaction', growthOf('rewriteMs')),
  ]
}

interface SizeFigures {
  readonly claims: number
  readonly readyMs: number
  /** Processor time from the start until the server has settled. */
  readonly settledMs: number
  readonly anonymousMb: number
  /** Anonymous memory after the idle server has collected its garbage. */
  readonly collectedMb: number
  readonly mappedMb: number
  readonly listMs: number
  readonly watchMs: number
  /** Per claim. */
  readonly bindMs: number
  /** Processor time of the server per claim. */
  readonly bindCpuMs: number
  /** Per write. */
  readonly rewriteMs: number
}

function figuresOf(size: SizeFigures): Figure[] {
  const name = `${formatCount(size.claims)} claims with volumes`
  return [
    { name: `${name}: start to ready`, unit: 'ms', value: size.readyMs },
    { name: `${name}: processor time until all controllers are idle`, unit: 'ms', value: size.settledMs },
    { name: `${name}: anonymous memory`, unit: 'MB', value: size.anonymousMb },
    {
      name: `${name}: anonymous memory after the idle server has collected its garbage`,
      unit: 'MB',
      value: size.collectedMb,
    },
    { name: `${name}: mapped memory`, unit: 'MB', value: size.mappedMb },
    { name: `${name}: list of all claims, in pages of 500`, unit: 'ms', value: size.listMs },
    { name: `${name}: initial events of a watch`, unit: 'ms', value: size.watchMs },
    { name: `${name}: further claims bound`, unit: '/s', value: 1_000 / size.bindMs },
    { name: `${name}: processor time per further bound claim`, unit: 'ms', value: size.bindCpuMs },
    { name: `${name}: writes in the store, each with one compaction`, unit: '/s', value: 1_000 / size.rewriteMs },
  ]
}

async function measureSize(options: PartOptions, claims: number): Promise<SizeFigures> {
  const { profileDir, progress } = options
  const dataDir = join(options.dir, `claims-${claims}`)
  await mkdir(dataDir)
  progress(`writing ${formatCount(claims)} claims with volumes`)
  await fillWithBoundClaims(dataDir, claims)
  const rewriteMs = await measureRewrites(dataDir, claims)
  progress(`starting with ${formatCount(claims)} claims with volumes`)
  const nodeFlags = claims > DEFAULT_HEAP_CLAIMS_MAX ? [LARGE_HEAP_FLAG] : []
  const server = await startServer({ dataDir, profileDir, command: 'up', nodeFlags })
  try {
    const settledMs = await waitUntilSettled(server)
    const { anonymousMb, mappedMb } = server.memory()
    await sleep(COLLECTION_MS)
    const { anonymousMb: collectedMb } = server.memory()
    const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
    const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    progress(`listing ${formatCount(claims)} claims`)
    const listMs = await measureList(endpoint)
    const watchMs = await measureInitialEvents(endpoint)
    progress(`binding claims beside ${formatCount(claims)} others`)
    const binding = await measureBinding(endpoint, server)
    const { readyMs } = server
    return { claims, readyMs, settledMs, anonymousMb, collectedMb, mappedMb, listMs, watchMs, ...binding, rewriteMs }
  } finally {
    await server.stop()
  }
}

/** Returns the processor time that the server used from its start until it settled. */
async function waitUntilSettled(server: ServerProcess): Promise<number> {
  const endMs = performance.now() + SETTLED.timeoutMs
  while (performance.now() < endMs) {
    const startMs = server.cpuMs()
    await sleep(SETTLED.windowMs)
    if (server.cpuMs() - startMs < SETTLED.share * SETTLED.windowMs) return startMs
  }
  throw new Error(`the server did not become idle within ${SETTLED.timeoutMs / 1_000} s`)
}

async function fillWithBoundClaims(dataDir: string, claims: number): Promise<void> {
  const store = await openLmdbStore({ dir: join(dataDir, 'store'), clock: systemClock() })
  for (let first = 0; first < claims; first += PAIRS_PER_TRANSACTION) {
    const puts: Put[] = []
    for (let number = first; number < Math.min(claims, first + PAIRS_PER_TRANSACTION); number++) {
      const claim = boundClaim({ number, namespace: NAMESPACE, change: 0 })
      const volume = boundVolume(number, NAMESPACE)
      puts.push({ put: claimKey(claim.name), value: claim.value })
      puts.push({ put: `core/persistentvolumes/${volume.name}`, value: volume.value })
    }
    await store.transact(() => puts)
  }
  await store.close()
}

/** Returns the time per write of a store that keeps no superseded states, so that each write compacts one. */
async function measureRewrites(dataDir: string, claims: number): Promise<number> {
  const store = await openLmdbStore({
    dir: join(dataDir, 'store'),
    clock: systemClock(),
    history: { keepMs: 0, entriesMax: 0 },
  })
  const startMs = performance.now()
  for (let first = 0; first < REWRITES.count; first += REWRITES.perTransaction) {
    const numbers = Array.from(
      { length: Math.min(REWRITES.perTransaction, claims) },
      // A prime distributes the numbers over all claims.
      (_, offset) => ((first + offset) * 7_919) % claims,
    )
    const puts = [...new Set(numbers)].map((number): Put => {
      const { name, value } = boundClaim({ number, namespace: NAMESPACE, change: first + 1 })
      return { put: claimKey(name), value }
    })
    await store.transact(() => puts)
  }
  const rewriteMs = (performance.now() - startMs) / REWRITES.count
  await store.close()
  return rewriteMs
}

async function measureList(endpoint: Endpoint): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  const startMs = performance.now()
  let token: string | undefined
  do {
    const query = token ? `&continue=${encodeURIComponent(token)}` : ''
    token = await readPage(endpoint, agent, `${CLAIMS}?limit=500${query}`)
  } while (token)
  agent.destroy()
  return performance.now() - startMs
}

/** Reads one page and returns the token of the next one. */
const readPage = (endpoint: Endpoint, agent: Agent, path: string): Promise<string | undefined> =>
  readListMetadata(endpoint, agent, path, /"continue":"([^"]+)"/)

/** Reads a list and returns what the first group of the pattern matches in its metadata. */
function readListMetadata(
  endpoint: Endpoint,
  agent: Agent,
  path: string,
  pattern: RegExp,
): Promise<string | undefined> {
  const { port, ca, cert, key } = endpoint
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, ca, cert, key, path, agent }, async (response) => {
      try {
        const body = Buffer.concat(await response.toArray())
        if (response.statusCode !== 200) throw new Error(`GET ${path}: ${response.statusCode}`)
        resolve(pattern.exec(body.toString('latin1', 0, METADATA_BYTES))?.[1])
      } catch (error) {
        reject(error)
      }
    }).once('error', reject)
  })
}

/** Returns the time from the request to the bookmark after the last initial event. */
async function measureInitialEvents(endpoint: Endpoint): Promise<number> {
  const path = `${CLAIMS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
  const completion = createDeferred<void>()
  const connection = await openConnection(endpoint, completion.reject)
  const startMs = performance.now()
  await connection.read(numberedRequest({ method: 'GET', path })(0), (line) => {
    if (line.startsWith('{"type":"BOOKMARK"')) completion.resolve()
  })
  try {
    await completion.promise
    return performance.now() - startMs
  } finally {
    connection.close()
  }
}

/** Returns the time, and the processor time of the server, per claim of a burst of claims that bind to existing volumes. */
async function measureBinding(
  endpoint: Endpoint,
  server: ServerProcess,
): Promise<{ bindMs: number; bindCpuMs: number }> {
  const bursts = startRole<BurstJob, BurstResult>('burst')
  try {
    let seconds = 0
    let cpuMs = 0
    for (let round = 0; round <= BINDING_BURST.warmUpRounds; round++) {
      const burst = {
        endpoint,
        clients: BINDING_BURST.clients,
        count: BINDING_BURST.claims,
        after: round * BINDING_BURST.claims,
      }
      const storageClassName = `scale-${round}`
      const volume = {
        metadata: { name: `scale-${NUMBER}`, labels: LABELS },
        spec: {
          capacity: { storage: '10Gi' },
          accessModes: ['ReadWriteOnce'],
          storageClassName,
          hostPath: { path: `/volumes/${NUMBER}` },
        },
      }
      const claim = buildClaim(`scale-${NUMBER}`)
      const metadata = { ...claim.metadata, labels: LABELS }
      const claimBody = { ...claim, metadata, spec: { ...claim.spec, storageClassName } }
      const run = async (path: string, body: object, until: string) => {
        const watchAfter = await readVersion(endpoint, path)
        return bursts.run({ ...burst, ...createAndWatchRequests(path, body), until, watchAfter })
      }
      await run(VOLUMES, volume, '"phase":"Available"')
      const startCpuMs = server.cpuMs()
      seconds = (await run(CLAIMS, claimBody, '"phase":"Bound"')).seconds
      cpuMs = server.cpuMs() - startCpuMs
    }
    return { bindMs: (seconds * 1_000) / BINDING_BURST.claims, bindCpuMs: cpuMs / BINDING_BURST.claims }
  } finally {
    bursts.stop()
  }
}

/** Returns the current version of a collection, so that a watch from it does not begin with all existing objects. */
async function readVersion(endpoint: Endpoint, path: string): Promise<string> {
  const agent = new Agent()
  const version = await readListMetadata(endpoint, agent, `${path}?limit=1`, /"resourceVersion":"(\d+)"/)
  agent.destroy()
  if (version === undefined) throw new Error(`GET ${path}: the list has no resourceVersion`)
  return version
}

/** Returns the request that creates an object, and a watch of the objects that the measurement creates. */
const createAndWatchRequests = (path: string, body: object): { request: RequestText; watch: RequestText } => ({
  request: { method: 'POST', path, body: JSON.stringify(body) },
  watch: { method: 'GET', path: `${path}?watch=1&labelSelector=${encodeURIComponent(`tier=${LABELS.tier}`)}` },
})

async function measureCapacity({ dir, profileDir, progress }: PartOptions): Promise<Figure[]> {
  const { nodes, classes } = CLUSTER
  const objects = formatCount(nodes * classes)
  progress(`writing ${objects} capacity objects`)
  await fillCluster(dir, CLUSTER)
  progress(`starting with ${objects} capacity objects`)
  const server = await startServer({ dataDir: dir, profileDir, command: 'up' })
  try {
    await waitUntilSettled(server)
    const name = `${formatCount(nodes)} nodes × ${classes} classes, ${objects} capacity objects`
    const { anonymousMb, mappedMb } = server.memory()
    return [
      { name: `${name}: start to ready`, unit: 'ms', value: server.readyMs },
      { name: `${name}: anonymous memory`, unit: 'MB', value: anonymousMb },
      { name: `${name}: mapped memory`, unit: 'MB', value: mappedMb },
    ]
  } finally {
    await server.stop()
  }
}
