// The API server, measured from outside over HTTPS: durable creates, gets, a long list, fan-out to watchers, start-up
// and memory. Figures and their limits are measured in turns, so that both meet the same machine.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreatePki, type Pki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { claimNamed, fillDirectory, storedClaim } from './lib/claims.ts'
import type { EchoJob } from './lib/echo-role.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { measureGroupCommit } from './lib/group-commit.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { type FanOutJob, type LoadResult, NUMBER, type RequestsJob, type RequestText } from './lib/load-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { measureBareNode, type ServerProcess, startServer } from './lib/server-process.ts'
import type { SuiteOptions } from './lib/suite.ts'

const ROUNDS = 3
const WARM_UP_MS = 2_000
const MEASURE_MS = 2_000
const COMMIT_MS = 400
const CREATING_CLIENTS = [1, 16, 256]
const GETTING_CLIENTS = 16
const LISTED_CLAIMS = 10_000
const WATCHERS = 1_000
const FAN_OUT_CREATES = 25
const FULL_DIRECTORY_CLAIMS = 100_000
const IDLE_MS = 2_000

const CREATE_RATIO_MIN = 0.4
const READY_MS_MAX = { empty: 500, full: 3_000 }
const RESIDENT_MB_MAX = 120

const CLAIMS_PATH = '/api/v1/namespaces/default/persistentvolumeclaims'
const CREATES_PATH = '/api/v1/namespaces/kube-public/persistentvolumeclaims'
const CREATE: RequestText = { method: 'POST', path: CREATES_PATH, body: JSON.stringify(claimNamed(`claim-${NUMBER}`)) }
const HTTPS_LIMIT = 'HTTPS with as many bytes'
const DISK_LIMIT = 'group commit of as many bytes'

export async function measureApi(options: SuiteOptions): Promise<Figure[]> {
  const dir = await mkdtemp(join(options.dir ?? tmpdir(), 'stowage-bench-'))
  const parts = { creates: measureCreates, reads: measureReads, watches: measureFanOut }
  const wanted = (part: string) => options.parts.length === 0 || options.parts.includes(part)
  const figures: Figure[] = []
  try {
    if (Object.keys(parts).some(wanted)) {
      options.progress(`making a directory with ${LISTED_CLAIMS} claims`)
      const bench = await openBench({ ...options, dir })
      try {
        for (const [part, measure] of Object.entries(parts)) if (wanted(part)) figures.push(...(await measure(bench)))
      } finally {
        await bench.close()
      }
    }
    if (wanted('starts')) figures.push(...(await measureStarts({ ...options, dir })))
    return figures
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

interface Bench {
  readonly dir: string
  readonly load: Role<RequestsJob | FanOutJob, LoadResult>
  readonly echo: Role<EchoJob, number>
  readonly api: Endpoint
  readonly echoed: Endpoint
  readonly progress: (text: string) => void
  close(): Promise<void>
}

/** A server with claims in it, an echo beside it, and a load generator for both. */
async function openBench({ dir, profileDir, progress }: SuiteOptions & { dir: string }): Promise<Bench> {
  const dataDir = join(dir, 'data')
  await fillDirectory(dataDir, LISTED_CLAIMS)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir })
  const load = startRole<RequestsJob | FanOutJob, LoadResult>('load')
  const echo = startRole<EchoJob, number>('echo')
  const echoPort = await echo.run({ do: 'listen', pki: servingPart(pki) })
  const endpoint = (port: number): Endpoint => ({ port, ca: pki.caCert, ...pki.admin })
  return {
    dir,
    load,
    echo,
    api: endpoint(server.port),
    echoed: endpoint(echoPort),
    progress,
    close: async () => {
      load.stop()
      echo.stop()
      await server.stop()
    },
  }
}

const servingPart = ({ caCert, servingCert, servingKey }: Pki) => ({ caCert, servingCert, servingKey })

async function measureCreates({ dir, load, echo, api, echoed, progress }: Bench): Promise<Figure[]> {
  const figures: Figure[] = []
  const valueBytes = storedClaim(`claim-${NUMBER}`, 'default').length
  for (const clients of CREATING_CLIENTS) {
    const rounds = { creates: [] as number[], echoes: [] as number[], commits: [] as number[] }
    for (let round = 1; round <= ROUNDS; round++) {
      progress(`creates with ${clients} clients, round ${round} of ${ROUNDS}`)
      const request = { do: 'requests', clients, request: CREATE, warmUpMs: WARM_UP_MS, measureMs: MEASURE_MS } as const
      const created = await load.run({ ...request, endpoint: api })
      await echo.run({ do: 'answer', bodyBytes: created.bodyBytes })
      const answered = await load.run({ ...request, endpoint: echoed })
      rounds.creates.push(rateOf(created))
      rounds.echoes.push(rateOf(answered))
      rounds.commits.push(measureGroupCommit({ dir, valueBytes, writers: clients, measureMs: COMMIT_MS }))
    }
    const name = `durable creates, ${clients} client${clients > 1 ? 's' : ''}`
    const value = medianOf(rounds.creates)
    const https = { value: medianOf(rounds.echoes), of: HTTPS_LIMIT }
    const disk = { value: medianOf(rounds.commits), of: DISK_LIMIT }
    const [lower, higher] = https.value < disk.value ? [https, disk] : [disk, https]
    const target = clients === Math.max(...CREATING_CLIENTS) ? { ratioMin: CREATE_RATIO_MIN } : undefined
    figures.push({ name, unit: '/s', value, limit: lower, target }, { name, unit: '/s', value, limit: higher })
  }
  return figures
}

async function measureReads({ load, echo, api, echoed, progress }: Bench): Promise<Figure[]> {
  const compare = async (clients: number, request: RequestText) => {
    const rounds = { answers: [] as number[], echoes: [] as number[] }
    for (let round = 1; round <= ROUNDS; round++) {
      progress(`GET ${request.path} with ${clients} clients, round ${round} of ${ROUNDS}`)
      const job = { do: 'requests', clients, request, warmUpMs: WARM_UP_MS, measureMs: MEASURE_MS } as const
      const answered = await load.run({ ...job, endpoint: api })
      await echo.run({ do: 'answer', bodyBytes: answered.bodyBytes })
      rounds.answers.push(rateOf(answered))
      rounds.echoes.push(rateOf(await load.run({ ...job, endpoint: echoed })))
    }
    return { value: medianOf(rounds.answers), limit: { value: medianOf(rounds.echoes), of: HTTPS_LIMIT } }
  }
  const gets = await compare(GETTING_CLIENTS, { method: 'GET', path: `${CLAIMS_PATH}/stored-005000` })
  const lists = await compare(1, { method: 'GET', path: CLAIMS_PATH })
  return [
    { name: `gets, ${GETTING_CLIENTS} clients`, unit: '/s', ...gets },
    {
      name: `list of ${LISTED_CLAIMS.toLocaleString('en')} claims`,
      unit: 'ms',
      value: 1000 / lists.value,
      limit: { ...lists.limit, value: 1000 / lists.limit.value },
    },
  ]
}

async function measureFanOut({ load, echo, api, echoed, progress }: Bench): Promise<Figure[]> {
  const lineBytes = storedClaim(`claim-${NUMBER}`, 'default').length + EVENT_FRAME_BYTES
  await echo.run({ do: 'answer', bodyBytes: lineBytes, lineBytes })
  const rounds = { delivered: [] as number[], echoes: [] as number[] }
  for (let round = 1; round <= ROUNDS; round++) {
    progress(`fan-out to ${WATCHERS} watchers, round ${round} of ${ROUNDS}`)
    const job = { do: 'fanOut', watchers: WATCHERS, create: CREATE, creates: FAN_OUT_CREATES } as const
    const version = await newestVersion(api)
    const watch: RequestText = { method: 'GET', path: `${CREATES_PATH}?watch=1&resourceVersion=${version}` }
    rounds.delivered.push(rateOf(await load.run({ ...job, watch, endpoint: api })))
    rounds.echoes.push(rateOf(await load.run({ ...job, watch, endpoint: echoed })))
  }
  const limit = { value: medianOf(rounds.echoes), of: HTTPS_LIMIT }
  const name = `events to ${WATCHERS.toLocaleString('en')} watchers`
  return [{ name, unit: '/s', value: medianOf(rounds.delivered), limit }]
}

function newestVersion({ port, ca, cert, key }: Endpoint): Promise<string> {
  const path = `${CREATES_PATH}?limit=1`
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, ca, cert, key, path, agent: false }, async (answer) => {
      resolve(JSON.parse(Buffer.concat(await answer.toArray()).toString()).metadata.resourceVersion)
    }).once('error', reject)
  })
}

/** What an event has beside the stored object: its type, the object's kind and version. */
const EVENT_FRAME_BYTES = 120

const rateOf = ({ count, seconds }: LoadResult): number => count / seconds

async function measureStarts({ dir, progress, profileDir }: SuiteOptions & { dir: string }): Promise<Figure[]> {
  const full = join(dir, 'full')
  progress(`making a directory with ${FULL_DIRECTORY_CLAIMS} claims`)
  await mkdir(full)
  await fillDirectory(full, FULL_DIRECTORY_CLAIMS)

  const bare: { readyMs: number; residentMb: number }[] = []
  const started = { empty: [] as Started[], full: [] as Started[] }
  for (let round = 1; round <= ROUNDS; round++) {
    progress(`start to ready, round ${round} of ${ROUNDS}`)
    bare.push(await measureBareNode())
    started.empty.push(await measureStart({ dataDir: join(dir, `empty-${round}`), profileDir }))
    started.full.push(await measureStart({ dataDir: full, profileDir }))
  }
  const bareReady = { value: medianOf(bare.map(({ readyMs }) => readyMs)), of: 'node that runs nothing' }
  const bareResident = { value: medianOf(bare.map(({ residentMb }) => residentMb)), of: 'node that runs nothing' }
  return (['empty', 'full'] as const).flatMap((which): Figure[] => {
    const of = which === 'empty' ? 'empty' : `${FULL_DIRECTORY_CLAIMS.toLocaleString('en')} claims`
    return [
      {
        name: `start to ready, ${of}`,
        unit: 'ms',
        value: medianOf(started[which].map(({ readyMs }) => readyMs)),
        limit: bareReady,
        target: { valueMax: READY_MS_MAX[which] },
      },
      {
        name: `resident idle, ${of}`,
        unit: 'MB',
        value: medianOf(started[which].map(({ residentMb }) => residentMb)),
        limit: bareResident,
        target: which === 'empty' ? { valueMax: RESIDENT_MB_MAX } : undefined,
      },
    ]
  })
}

interface Started {
  readonly readyMs: number
  readonly residentMb: number
}

async function measureStart(options: { dataDir: string; profileDir?: string }): Promise<Started> {
  const server: ServerProcess = await startServer(options)
  await systemClock().sleep(IDLE_MS)
  const started = { readyMs: server.readyMs, residentMb: server.residentMb() }
  await server.stop()
  return started
}
