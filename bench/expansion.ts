// Claims that grow, measured from outside: a burst of edits sent over HTTPS to `stowage up` on a durable store, with a
// driver that answers at once, each timed from its edit to the event that shows the new size. The volumes are devices, so
// that no node has a part in it. And how many writes a growth takes, events about it left out.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { claimNamed } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, type RequestText } from './lib/load-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { startFakeDriver, startServer } from './lib/server-process.ts'
import type { SuiteOptions } from './lib/suite.ts'

const CLAIMS_GROWN = 1_000
const ROUNDS = 4 // the first warms up
const CLIENTS = 128
const PER_SECOND_MIN = 300
const WRITES_MAX = 3
const FIRST_GI = 10

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'growing'
const NAMESPACE = 'default'
const CLAIMS = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`
const VOLUMES = '/api/v1/persistentvolumes'

export async function measureExpansion(options: SuiteOptions): Promise<Figure[]> {
  const dir = await mkdtemp(join(options.dir ?? tmpdir(), 'stowage-bench-'))
  const { profileDir } = options
  const socket = join(dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir })
  const dataDir = join(dir, 'data')
  const server = await startServer({ dataDir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const burst = (request: RequestText, until: string) =>
    bursts.run({
      endpoint,
      clients: CLIENTS,
      count: CLAIMS_GROWN,
      after: 0,
      create: request,
      watch: { method: 'GET', path: `${CLAIMS}?watch=1` },
      until,
    })
  try {
    await post(endpoint, '/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: CLASS },
      provisioner: DRIVER,
      allowVolumeExpansion: true,
    })
    options.progress(`${CLAIMS_GROWN.toLocaleString('en')} claims`)
    await burst({ method: 'POST', path: CLAIMS, body: JSON.stringify(aClaim()) }, '"phase":"Bound"')

    const rounds: Round[] = []
    for (let round = 0; round < ROUNDS; round++) {
      options.progress(round === 0 ? 'warming up' : `round ${round} of ${ROUNDS - 1}`)
      // The unavoidable part: as many durable edits of the same claims by the same clients, that mean nothing to anybody.
      const idle = await burst(edit({ metadata: { labels: { round: `r${round}` } } }), `"round":"r${round}"`)
      const size = `${FIRST_GI * (round + 2)}Gi`
      const before = server.cpuMs()
      const counted = await countWrites(endpoint, () =>
        burst(edit({ spec: { resources: { requests: { storage: size } } } }), `"capacity":{"storage":"${size}"}`),
      )
      rounds.push({ idle, ...counted, cpuMs: (server.cpuMs() - before) / CLAIMS_GROWN })
    }
    return figuresOf(rounds.slice(1), options)
  } finally {
    bursts.stop()
    await server.stop()
    await driver.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

interface Round {
  readonly idle: BurstResult
  readonly result: BurstResult
  /** Of claims and volumes together, the user's own included. */
  readonly writes: number
  readonly cpuMs: number
}

function figuresOf(rounds: readonly Round[], { note }: SuiteOptions): Figure[] {
  const median = (read: (round: Round) => number) => medianOf(rounds.map(read))
  const what = `${CLAIMS_GROWN.toLocaleString('en')} claims grown at once`
  const idle = 'edits that mean nothing'
  note(`${what}: of the processors the server took ${median(({ cpuMs }) => cpuMs).toFixed(2)} ms each.`)
  return [
    {
      name: what,
      unit: '/s',
      value: median(({ result }) => CLAIMS_GROWN / result.seconds),
      limit: { value: median((round) => CLAIMS_GROWN / round.idle.seconds), of: idle },
      target: { valueMin: PER_SECOND_MIN },
    },
    {
      name: `${what}, p50`,
      unit: 'ms',
      value: median(({ result }) => result.p50Ms),
      limit: { value: median((round) => round.idle.p50Ms), of: 'the same' },
    },
    {
      name: `${what}, p99`,
      unit: 'ms',
      value: median(({ result }) => result.p99Ms),
      limit: { value: median((round) => round.idle.p99Ms), of: 'the same' },
    },
    {
      name: 'writes of claim and volume per growth, besides the edit',
      unit: 'writes',
      value: median(({ writes }) => writes / CLAIMS_GROWN - 1),
      target: { valueMax: WRITES_MAX },
    },
  ]
}

export async function countWrites(endpoint: Endpoint, run: () => Promise<BurstResult>) {
  let writes = 0
  const watchers = []
  for (const path of [CLAIMS, VOLUMES]) {
    const connection = await openConnection(endpoint, () => {})
    await connection.read(numberedRequest({ method: 'GET', path: `${path}?watch=1` })(0), (line) => {
      if (line.includes('"type":"MODIFIED"')) writes++
    })
    watchers.push(connection)
  }
  try {
    const result = await run()
    await quiet(() => writes)
    return { result, writes }
  } finally {
    for (const watcher of watchers) watcher.close()
  }
}

/** Until nothing more has come for a moment. */
async function quiet(count: () => number): Promise<void> {
  for (let last = -1; last !== count(); ) {
    last = count()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

export async function post(endpoint: Endpoint, path: string, body: object): Promise<void> {
  const connection = await openConnection(endpoint, () => {})
  const request = numberedRequest({ method: 'POST', path, body: JSON.stringify(body) })(0)
  const { status } = await new Promise<{ status: number }>((resolve) => connection.ask(request, resolve))
  connection.close()
  if (status >= 300) throw new Error(`POST ${path}: ${status}`)
}

const edit = (change: object): RequestText => ({
  method: 'PATCH',
  path: `${CLAIMS}/claim-${NUMBER}`,
  body: JSON.stringify(change),
})

function aClaim() {
  const { spec, ...rest } = claimNamed(`claim-${NUMBER}`)
  return { ...rest, spec: { ...spec, storageClassName: CLASS, volumeMode: 'Block' } }
}
