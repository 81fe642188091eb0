// Measures the API server over HTTPS: durable creates, reads, fan-out to watchers, start-up and memory.
import { mkdir } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import { loadOrCreatePki, type Pki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { buildClaim, fillDirectory, storedClaim } from './lib/claims.ts'
import type { EchoJob } from './lib/echo-role.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { measureGroupCommit } from './lib/group-commit.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import {
  type FanOutJob,
  type LoadResult,
  NUMBER,
  type RequestsJob,
  type RequestText,
  type TurnsJob,
  type TurnsResult,
} from './lib/load-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { type Memory, measureBareNode, NPM_START_FLAGS, type ServerProcess, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const SHORT = { rounds: 3, turnPairs: 16, fanOutRounds: 1, measureMs: 500, startRounds: 2 }
const LONG = { rounds: 5, turnPairs: 64, fanOutRounds: 3, measureMs: 2_000, startRounds: 3 }
/** Warm-up of the first round of a part. In later rounds the code is already compiled. */
const FIRST_WARM_UP_MS = 2_000
const WARM_UP_MS = 200
/** Turn of creates or echoes. It is short, because the speed of the machine changes from second to second. */
const TURN_MS = 150
const COMMIT_MEASURE_MS = 400
const CREATING_CLIENTS = [1, 16, 256]
const GETTING_CLIENTS = 16
/** Claims per namespace. The last number is reported as a figure. */
const LISTED_CLAIMS = [1_000, 3_000, 10_000]
/** Numbers of watchers. The last number is reported as a figure. */
const WATCHERS = [100, 300, 1_000]
const FAN_OUT_CREATES = 25
const FULL_DIRECTORY_CLAIMS = 100_000
const IDLE_DELAY_MS = 2_000

const CREATE_RATIO_MIN = 0.4
const READY_MS_MAX = { empty: 300, full: 3_000 }
const ANONYMOUS_MB_MAX = 70

const listedPath = (claims: number) => `/api/v1/namespaces/listed-${claims}/persistentvolumeclaims`
const CREATES_PATH = '/api/v1/namespaces/kube-public/persistentvolumeclaims'
const CREATE: RequestText = { method: 'POST', path: CREATES_PATH, body: JSON.stringify(buildClaim(`claim-${NUMBER}`)) }
const HTTPS_LIMIT = 'an HTTPS echo of the same size'
const DISK_LIMIT = 'a group commit of the same size'

export const apiSuite: Suite = {
  parts: {
    creates: (options) => withBench(options, measureCreates),
    reads: (options) => withBench(options, measureReads),
    watches: (options) => withBench(options, measureFanOut),
    starts: measureStarts,
  },
}

async function withBench(options: PartOptions, measure: (bench: Bench) => Promise<Figure[]>): Promise<Figure[]> {
  const bench = await openBench(options)
  try {
    return await measure(bench)
  } finally {
    await bench.close()
  }
}

interface Bench {
  readonly dir: string
  readonly load: Role<RequestsJob | FanOutJob, LoadResult> & Role<TurnsJob, TurnsResult>
  readonly echo: Role<EchoJob, number>
  readonly apiEndpoint: Endpoint
  readonly echoEndpoint: Endpoint
  readonly size: typeof SHORT
  readonly progress: (text: string) => void
  close(): Promise<void>
}

/** Starts a server with claims, an echo server, and a load generator for both. */
async function openBench({ dir, profileDir, isLong, progress }: PartOptions): Promise<Bench> {
  const dataDir = join(dir, 'data')
  for (const claims of LISTED_CLAIMS) await fillDirectory(dataDir, claims, `listed-${claims}`)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir })
  const load = startRole<RequestsJob | FanOutJob | TurnsJob, LoadResult & TurnsResult>('load') as Bench['load']
  const echo = startRole<EchoJob, number>('echo', { nodeFlags: NPM_START_FLAGS })
  const echoPort = await echo.run({ do: 'listen', pki: servingPart(pki) })
  const endpoint = (port: number): Endpoint => ({ port, ca: pki.caCert, ...pki.admin })
  return {
    dir,
    load,
    echo,
    apiEndpoint: endpoint(server.port),
    echoEndpoint: endpoint(echoPort),
    size: isLong ? LONG : SHORT,
    progress,
    close: async () => {
      load.stop()
      echo.stop()
      await server.stop()
    },
  }
}

const servingPart = ({ caCert, servingCert, servingKey }: Pki) => ({ caCert, servingCert, servingKey })

async function measureCreates({
  dir,
  load,
  echo,
  apiEndpoint,
  echoEndpoint,
  size,
  progress,
}: Bench): Promise<Figure[]> {
  const figures: Figure[] = []
  const valueBytes = storedClaim(`claim-${NUMBER}`, 'default').length
  for (const clients of CREATING_CLIENTS) {
    progress(`${clients} clients`)
    const isFirst = clients === CREATING_CLIENTS[0]
    const warmUp = {
      do: 'requests',
      clients,
      request: CREATE,
      ...chooseWindow(size, isFirst),
      endpoint: apiEndpoint,
    } as const
    const { bodyBytes } = await load.run(warmUp)
    await echo.run({ do: 'setSizes', bodyBytes })
    const { rates } = await load.run({
      do: 'turns',
      clients,
      requests: [apiEndpoint, echoEndpoint].map((endpoint) => ({ ...CREATE, endpoint })),
      order: Array.from({ length: size.turnPairs }, (_, pair) => (pair % 2 === 0 ? [0, 1] : [1, 0])).flat(),
      warmUpMs: WARM_UP_MS,
      turnMs: TURN_MS,
    })
    const commits = Array.from({ length: size.rounds }, () =>
      measureGroupCommit({ dir, valueBytes, writers: clients, measureMs: COMMIT_MEASURE_MS }),
    )
    const name = `durable creates, ${clients} client${clients > 1 ? 's' : ''}`
    const value = medianOf(rates[0]!)
    const https = { value: medianOf(rates[1]!), of: HTTPS_LIMIT }
    const disk = { value: medianOf(commits), of: DISK_LIMIT }
    const [lower, higher] = https.value < disk.value ? [https, disk] : [disk, https]
    const target = clients === Math.max(...CREATING_CLIENTS) ? { target: { ratioMin: CREATE_RATIO_MIN } } : {}
    figures.push({ name, unit: '/s', value, limit: lower, ...target }, { name, unit: '/s', value, limit: higher })
  }
  return figures
}

async function measureReads({ load, echo, apiEndpoint, echoEndpoint, size, progress }: Bench): Promise<Figure[]> {
  let isFirst = true
  const measureGets = async (clients: number, path: string, options: { withEcho: boolean }) => {
    const rounds = { responses: [] as number[], echoes: [] as number[] }
    for (let round = 1; round <= size.rounds; round++) {
      progress(`GET ${path} with ${clients} clients, round ${round} of ${size.rounds}`)
      const request: RequestText = { method: 'GET', path }
      const job = { do: 'requests', clients, request, ...chooseWindow(size, isFirst) } as const
      isFirst = false
      const response = await load.run({ ...job, endpoint: apiEndpoint })
      rounds.responses.push(rateOf(response))
      if (!options.withEcho) continue
      await echo.run({ do: 'setSizes', bodyBytes: response.bodyBytes })
      rounds.echoes.push(rateOf(await load.run({ ...job, endpoint: echoEndpoint })))
    }
    return { rate: medianOf(rounds.responses), echo: medianOf(rounds.echoes) }
  }
  const maxClaims = Math.max(...LISTED_CLAIMS)
  const gets = await measureGets(GETTING_CLIENTS, `${listedPath(maxClaims)}/stored-005000`, { withEcho: true })
  const figures: Figure[] = [
    {
      name: `gets, ${GETTING_CLIENTS} clients`,
      unit: '/s',
      value: gets.rate,
      limit: { value: gets.echo, of: HTTPS_LIMIT },
    },
  ]
  const points: GrowthPoint[] = []
  for (const claims of LISTED_CLAIMS) {
    const lists = await measureGets(1, listedPath(claims), { withEcho: claims === maxClaims })
    points.push({ size: claims, ms: 1000 / lists.rate })
    if (claims !== maxClaims) continue
    const limit = { value: 1000 / lists.echo, of: HTTPS_LIMIT }
    figures.push({ name: `list of ${formatCount(claims)} claims`, unit: 'ms', value: 1000 / lists.rate, limit })
  }
  return [...figures, toTotalGrowthFigure('list of claims', { of: 'claims', points })]
}

async function measureFanOut({ load, echo, apiEndpoint, echoEndpoint, size, progress }: Bench): Promise<Figure[]> {
  const lineBytes = storedClaim(`claim-${NUMBER}`, 'default').length + EVENT_FRAME_BYTES
  await echo.run({ do: 'setSizes', bodyBytes: lineBytes, lineBytes })
  const points: GrowthPoint[] = []
  const figures: Figure[] = []
  for (const watchers of WATCHERS) {
    const rounds = { delivered: [] as number[], echoes: [] as number[] }
    for (let round = 1; round <= size.fanOutRounds; round++) {
      progress(`${watchers} watchers, round ${round} of ${size.fanOutRounds}`)
      const job = { do: 'fanOut', watchers, create: CREATE, creates: FAN_OUT_CREATES } as const
      const version = await readNewestVersion(apiEndpoint)
      const watch: RequestText = { method: 'GET', path: `${CREATES_PATH}?watch=1&resourceVersion=${version}` }
      rounds.delivered.push(rateOf(await load.run({ ...job, watch, endpoint: apiEndpoint })))
      if (watchers === Math.max(...WATCHERS))
        rounds.echoes.push(rateOf(await load.run({ ...job, watch, endpoint: echoEndpoint })))
    }
    const value = medianOf(rounds.delivered)
    points.push({ size: watchers, ms: (1000 * watchers) / value })
    if (rounds.echoes.length === 0) continue
    const limit = { value: medianOf(rounds.echoes), of: HTTPS_LIMIT }
    figures.push({ name: `events to ${formatCount(watchers)} watchers`, unit: '/s', value, limit })
  }
  return [...figures, toTotalGrowthFigure('delivery of an event to all watchers', { of: 'watchers', points })]
}

const chooseWindow = ({ measureMs }: typeof SHORT, isFirst: boolean) => ({
  warmUpMs: isFirst ? FIRST_WARM_UP_MS : WARM_UP_MS,
  measureMs,
})

function readNewestVersion({ port, ca, cert, key }: Endpoint): Promise<string> {
  const path = `${CREATES_PATH}?limit=1`
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, ca, cert, key, path, agent: false }, async (response) => {
      resolve(JSON.parse(Buffer.concat(await response.toArray()).toString()).metadata.resourceVersion)
    }).once('error', reject)
  })
}

/** Bytes of an event around the stored object: type, kind and apiVersion. */
const EVENT_FRAME_BYTES = 120

const rateOf = ({ count, seconds }: LoadResult): number => count / seconds

async function measureStarts({ dir, progress, profileDir, isLong }: PartOptions): Promise<Figure[]> {
  const { startRounds } = isLong ? LONG : SHORT
  const fullDir = join(dir, 'full')
  progress(`creating a data directory with ${formatCount(FULL_DIRECTORY_CLAIMS)} claims`)
  await mkdir(fullDir)
  await fillDirectory(fullDir, FULL_DIRECTORY_CLAIMS)

  const bareRounds: StartMeasurement[] = []
  const measurements = { empty: [] as StartMeasurement[], full: [] as StartMeasurement[] }
  for (let round = 1; round <= startRounds; round++) {
    progress(`round ${round} of ${startRounds}`)
    bareRounds.push(await measureBareNode())
    measurements.empty.push(await measureStart({ dataDir: join(dir, `empty-${round}`), profileDir }))
    measurements.full.push(await measureStart({ dataDir: fullDir, profileDir }))
  }
  const bareReady = { value: medianOf(bareRounds.map(({ readyMs }) => readyMs)), of: 'an idle Node.js process' }
  return (['empty', 'full'] as const).flatMap((variant): Figure[] => {
    const variantText = variant === 'empty' ? 'empty' : `${formatCount(FULL_DIRECTORY_CLAIMS)} claims`
    return [
      {
        name: `start to ready, ${variantText}`,
        unit: 'ms',
        value: medianOf(measurements[variant].map(({ readyMs }) => readyMs)),
        limit: bareReady,
        target: { valueMax: READY_MS_MAX[variant] },
      },
      {
        name: `anonymous memory idle, ${variantText}`,
        unit: 'MB',
        value: medianOf(measurements[variant].map(({ memory }) => memory.anonymousMb)),
        limit: { value: medianOf(bareRounds.map(({ memory }) => memory.anonymousMb)), of: 'an idle Node.js process' },
        ...(variant === 'empty' ? { target: { valueMax: ANONYMOUS_MB_MAX } } : {}),
      },
      {
        name: `mapped files idle, ${variantText}`,
        unit: 'MB',
        value: medianOf(measurements[variant].map(({ memory }) => memory.mappedMb)),
        limit: { value: medianOf(bareRounds.map(({ memory }) => memory.mappedMb)), of: 'an idle Node.js process' },
      },
    ]
  })
}

interface StartMeasurement {
  readonly readyMs: number
  readonly memory: Memory
}

async function measureStart(options: { dataDir: string; profileDir?: string }): Promise<StartMeasurement> {
  const server: ServerProcess = await startServer(options)
  await systemClock().sleep(IDLE_DELAY_MS)
  const measurement = { readyMs: server.readyMs, memory: server.memory() }
  await server.stop()
  return measurement
}
