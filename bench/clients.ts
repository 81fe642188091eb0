// Measures the client library: writes and watched caches in process and over HTTP, the memory of a cached claim, the work
// queue, and durable creates on etcd.
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock, systemRandom } from '../src/base/clock.ts'
import { createWorkQueue, done } from '../src/runtime/index.ts'
import { etcdSkipReason, startEtcd } from '../test/helpers/etcd.ts'
import { type CallersOptions, type Calls, callsPerSecond } from './lib/callers.ts'
import { boundClaim, buildClaim } from './lib/claims.ts'
import type { ClientJob, ClientResults } from './lib/client-role.ts'
import type { EtcdJob } from './lib/etcd-role.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { measureGroupCommit } from './lib/group-commit.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { type LoadResult, NUMBER, type RequestsJob, type RequestText } from './lib/load-role.ts'
import { profileFlags } from './lib/profiles.ts'
import { startRole } from './lib/role.ts'
import { type ServerOptions, type ServerProcess, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const ROUNDS = { short: 2, long: 3 }
const CALLERS: CallersOptions = { callers: 256, warmUpMs: 300, measureMs: 700 }
/** The warm-up covers connecting and compiling, which take longer on etcd. */
const ETCD_CALLERS = {
  short: { callers: 256, warmUpMs: 1_000, measureMs: 1_000 },
  long: { callers: 256, warmUpMs: 3_000, measureMs: 3_000 },
}
const COMMIT_MEASURE_MS = 400
const FOLLOWED_CLAIMS = 2_000
/** Fits into the watch backlog of the server: a larger burst would also measure reconnects. */
const BURST_CHANGES = 4_000
const BURSTS = 3
/** Claims in a cache. Memory is measured for the last number. */
const CACHED_CLAIMS = [2_500, 10_000, 40_000]

const BACKLOG_KEYS = [4_000, 16_000, 64_000]

const CACHED_CLAIM_KB_MAX = 3
const ETCD_RATIO_MIN = 0.5

const ETCD_PREFIX = '/bench'
const CLAIMS_PATH = '/api/v1/namespaces/default/persistentvolumeclaims'
const CREATE: RequestText = { method: 'POST', path: CLAIMS_PATH, body: JSON.stringify(buildClaim(`claim-${NUMBER}`)) }
const IN_PROCESS = 'the same in the server process'

export const clientsSuite: Suite = {
  parts: {
    writes: measureWrites,
    events: measureEvents,
    memory: measureMemory,
    backlog: measureBacklog,
    etcd: measureEtcd,
  },
}

/** A process that runs the server and calls it directly, and one that uses it over HTTPS. */
interface Pair {
  readonly inProcess: ClientProcess
  readonly overHttp: ClientProcess
  stop(): void
}

interface ClientProcess {
  run<Job extends ClientJob>(job: Job): Promise<ClientResults[Job['do']]>
}

async function startPair(
  server: Omit<Extract<ClientJob, { do: 'serve' }>, 'do'>,
  profileDir: string | undefined,
): Promise<Pair> {
  const start = (name: string) =>
    // biome-ignore lint/suspicious/noExplicitAny: the type of a result depends on its job, which a role cannot express
    startRole<ClientJob, any>('client', { nodeFlags: ['--expose-gc', ...profileFlags(profileDir, name)] })
  const [inProcess, overHttp] = [start('in-process'), start('over-http')]
  const address = await inProcess.run({ do: 'serve', ...server })
  await overHttp.run({ do: 'connect', to: address })
  return {
    inProcess,
    overHttp,
    stop() {
      overHttp.stop()
      inProcess.stop()
    },
  }
}

async function measureWrites(options: PartOptions): Promise<Figure[]> {
  const { dir, profileDir, note } = options
  note('Over HTTP, client and server are separate processes; in process they share one.')
  const figures: Figure[] = []
  for (const store of ['memory', 'lmdb'] as const) {
    const pair = await startPair({ store, dir: join(dir, store), claims: 0 }, profileDir)
    try {
      const { inProcess, overHttp, limit } = await medianOfRounds(options, `creates, ${store}`, async () => {
        const createCalls = await pair.inProcess.run({ do: 'create', ...CALLERS })
        const httpCreateCalls = await pair.overHttp.run({ do: 'create', ...CALLERS })
        const limitRate = await measureWriteLimit(store, { pair, dir, valueBytes: createCalls.objectBytes })
        return { inProcess: callsPerSecond(createCalls), overHttp: callsPerSecond(httpCreateCalls), limit: limitRate }
      })
      const name = (access: string) => `creates ${access}, ${store}, ${CALLERS.callers} callers`
      const limitText = store === 'memory' ? 'the store alone, same size' : 'a group commit of the same size'
      figures.push(
        { name: name('in process'), unit: '/s', value: inProcess, limit: { value: limit, of: limitText } },
        { name: name('over HTTP'), unit: '/s', value: overHttp, limit: { value: inProcess, of: IN_PROCESS } },
      )
    } finally {
      pair.stop()
    }
  }
  return figures
}

async function measureWriteLimit(
  store: 'memory' | 'lmdb',
  { pair, dir, valueBytes }: { pair: Pair; dir: string; valueBytes: number },
): Promise<number> {
  if (store === 'memory') return callsPerSecond(await pair.inProcess.run({ do: 'put', ...CALLERS }))
  return measureGroupCommit({ dir, valueBytes, writers: CALLERS.callers, measureMs: COMMIT_MEASURE_MS })
}

async function measureEvents(options: PartOptions): Promise<Figure[]> {
  const { dir, profileDir } = options
  const pair = await startPair({ store: 'memory', dir: join(dir, 'events'), claims: FOLLOWED_CLAIMS }, profileDir)
  try {
    const description = `${formatCount(BURSTS * BURST_CHANGES)} changes to a cache`
    const { inProcess, overHttp } = await medianOfRounds(options, description, async () => ({
      inProcess: await measureEventRate(() => followInProcess(pair)),
      overHttp: await measureEventRate(() => followOverHttp(pair)),
    }))
    const limit = { value: inProcess, of: IN_PROCESS }
    return [{ name: 'changes applied to a cache over HTTP', unit: '/s', value: overHttp, limit }]
  } finally {
    pair.stop()
  }
}

async function measureEventRate(follow: () => Promise<Calls>): Promise<number> {
  let [count, seconds] = [0, 0]
  for (let burst = 0; burst < BURSTS; burst++) {
    const receivedCalls = await follow()
    count += receivedCalls.count
    seconds += receivedCalls.seconds
  }
  return count / seconds
}

const followInProcess = ({ inProcess }: Pair) =>
  inProcess.run({ do: 'follow', changes: BURST_CHANGES, inThisProcess: true })

async function followOverHttp({ inProcess, overHttp }: Pair): Promise<Calls> {
  await overHttp.run({ do: 'follow', changes: 0, inThisProcess: false })
  const receivedCalls = overHttp.run({ do: 'follow', changes: BURST_CHANGES, inThisProcess: false })
  await inProcess.run({ do: 'change', changes: BURST_CHANGES })
  return receivedCalls
}

async function measureMemory({ dir, profileDir, progress }: PartOptions): Promise<Figure[]> {
  const figures: Figure[] = []
  const points: GrowthPoint[] = []
  for (const claims of CACHED_CLAIMS) {
    progress(`a cache of ${formatCount(claims)} claims`)
    const pair = await startPair({ store: 'memory', dir: join(dir, String(claims)), claims }, profileDir)
    try {
      const overHttp = await pair.overHttp.run({ do: 'measureMemory' })
      points.push({ size: claims, ms: overHttp.fillMs })
      if (claims !== CACHED_CLAIMS.at(-1)) continue
      const inProcess = await pair.inProcess.run({ do: 'measureMemory' })
      const figure = (name: string, { bytesPerClaim }: { bytesPerClaim: number }): Figure => ({
        name,
        unit: 'kB',
        value: bytesPerClaim / 1000,
        limit: { value: cachedJsonBytes() / 1000, of: 'the cached fields as JSON' },
        target: { valueMax: CACHED_CLAIM_KB_MAX },
      })
      figures.push(
        figure('memory per cached claim, over HTTP', overHttp),
        figure('memory per cached claim, in process', inProcess),
      )
    } finally {
      pair.stop()
    }
  }
  return [...figures, toTotalGrowthFigure('filling a cache over HTTP', { of: 'claims', points })]
}

/** Returns the JSON size of a cached claim. Caches remove managed fields. */
function cachedJsonBytes(): number {
  const { metadata, ...fields } = JSON.parse(
    boundClaim({ number: 1, namespace: 'default', change: 0 }).value.toString(),
  )
  const { managedFields: _, ...cachedMetadata } = metadata
  return Buffer.byteLength(JSON.stringify({ metadata: cachedMetadata, ...fields }))
}

/** Measures the cost of the queue itself: all keys are added before it runs, and no key needs work. */
async function measureBacklog({ progress }: PartOptions): Promise<Figure[]> {
  const points: GrowthPoint[] = []
  for (const keys of BACKLOG_KEYS) {
    progress(`${formatCount(keys)} keys`)
    const rounds: number[] = []
    while (rounds.length <= ROUNDS.long) rounds.push(await drainQueue(keys))
    points.push({ size: keys, ms: medianOf(rounds.slice(1)) })
  }
  const { size, ms } = points.at(-1)!
  return [
    { name: `work queue of ${formatCount(size)} keys without work`, unit: '/s', value: (size * 1_000) / ms },
    toTotalGrowthFigure('draining a work queue', { of: 'keys', points }),
  ]
}

async function drainQueue(keys: number): Promise<number> {
  const queue = createWorkQueue({ name: 'bench', clock: systemClock(), random: systemRandom() })
  for (let number = 0; number < keys; number++) queue.add(`default/claim-${number}`)
  const stop = new AbortController()
  let remainingKeys = keys
  const startMs = performance.now()
  await queue.run(async () => {
    if (--remainingKeys === 0) stop.abort()
    return done
  }, stop.signal)
  return performance.now() - startMs
}

async function measureEtcd(options: PartOptions): Promise<Figure[]> {
  const { dir, profileDir, isLong, note, reportMissing } = options
  const skipReason = etcdSkipReason()
  const job = isLong ? ETCD_CALLERS.long : ETCD_CALLERS.short
  const name = `durable creates on etcd, ${job.callers} clients`
  if (skipReason) {
    reportMissing(name, skipReason)
    return []
  }
  note('On etcd, the load, the API server and etcd share the processors; the limit runs without the API server.')
  const etcd = await startEtcd({ dir })
  const endpoint = etcd.endpoints[0]!
  const onEtcd = await startWithEndpoint({
    dataDir: join(dir, 'on-etcd'),
    store: `etcd://${endpoint}${ETCD_PREFIX}`,
    profileDir,
  })
  const embedded = await startWithEndpoint({ dataDir: join(dir, 'embedded') })
  const load = startRole<RequestsJob, LoadResult>('load')
  const etcdLoad = startRole<EtcdJob, Calls>('etcd')
  const { callers, ...times } = job
  try {
    const { creates, transactions, embeddedCreates } = await medianOfRounds(options, 'creates on etcd', async () => {
      const requests = { do: 'requests', clients: callers, request: CREATE, ...times } as const
      const createResult = await load.run({ ...requests, endpoint: onEtcd.endpoint })
      const keyPrefix = `${ETCD_PREFIX}-limit/keys/core/persistentvolumeclaims/default/claim-`
      const etcdCalls = await etcdLoad.run({ endpoint, keyPrefix, valueBytes: createResult.bodyBytes, ...job })
      const embeddedResult = await load.run({ ...requests, endpoint: embedded.endpoint })
      return {
        creates: callsPerSecond(createResult),
        transactions: callsPerSecond(etcdCalls),
        embeddedCreates: callsPerSecond(embeddedResult),
      }
    })
    const figure = { name, unit: '/s', value: creates } as const
    const limit = { value: transactions, of: 'etcd transactions of the same size' }
    return [
      { ...figure, limit, target: { ratioMin: ETCD_RATIO_MIN } },
      { ...figure, limit: { value: embeddedCreates, of: 'the same on the embedded store' } },
    ]
  } finally {
    load.stop()
    etcdLoad.stop()
    await onEtcd.stop()
    await embedded.stop()
    await etcd.remove()
  }
}

async function startWithEndpoint(options: ServerOptions): Promise<ServerProcess & { readonly endpoint: Endpoint }> {
  const server = await startServer(options)
  const pki = await loadOrCreatePki({ dir: join(options.dataDir, 'pki'), clock: systemClock() })
  return { ...server, endpoint: { port: server.port, ca: pki.caCert, ...pki.admin } }
}

/** Returns the medians over all rounds, without a first round for warm-up. */
async function medianOfRounds<Name extends string>(
  { progress, isLong }: Pick<PartOptions, 'progress' | 'isLong'>,
  description: string,
  measure: () => Promise<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const roundCount = isLong ? ROUNDS.long : ROUNDS.short
  progress(`${description}, warming up`)
  const names = Object.keys(await measure()) as Name[]
  const rounds: Record<Name, number>[] = []
  while (rounds.length < roundCount) {
    progress(`${description}, round ${rounds.length + 1} of ${roundCount}`)
    rounds.push(await measure())
  }
  const medians = names.map((name) => [name, medianOf(rounds.map((round) => round[name]))])
  return Object.fromEntries(medians) as Record<Name, number>
}
