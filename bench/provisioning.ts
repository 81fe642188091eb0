// Claims that become volumes, measured from outside: bursts of claims sent over HTTPS to `stowage up` on a durable
// store, each timed from its create to the event that shows it Bound; and what a cached claim and its volume weigh.
//   binding     volumes made beforehand
//   inProcess   a driver that answers at once, the provisioner in the server's process
//   alone       the same with `stowage provisioner`, over HTTPS as well
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { claimNamed } from './lib/claims.ts'
import type { ClientJob } from './lib/client-role.ts'
import { type Figure, medianOf, type Target } from './lib/figure.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, type RequestText } from './lib/load-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { type Program, startFakeDriver, startProvisioner, startServer } from './lib/server-process.ts'
import type { SuiteOptions } from './lib/suite.ts'

const BURSTS = [100, 1_000, 10_000]
const WARM_UP_CLAIMS = 2_000
const CLIENTS = 128
/** Targets hold for this burst. */
const TARGET_BURST = 1_000
/** A burst is over in two seconds, and the machine is not the same in any two of them: the middle one counts. */
const TARGET_ROUNDS = 3
const BINDING = { perSecondMin: 1_000, p99MsMax: 1_200 }
const PROVISIONING = { perSecondMin: 500, p99MsMax: 2_500 }
const PAIR_KB_MAX = 4
const WEIGHED_PAIRS = 20_000

const DRIVER = 'fake.csi.stowage.dev'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const VOLUMES = '/api/v1/persistentvolumes'

type Scratch = SuiteOptions & { readonly dir: string }
type Targets = typeof BINDING

export async function measureProvisioning(options: SuiteOptions): Promise<Figure[]> {
  const dir = await mkdtemp(join(options.dir ?? tmpdir(), 'stowage-bench-'))
  const parts = { binding: measureBinding, inProcess: measureInProcess, alone: measureAlone, memory: measureMemory }
  const figures: Figure[] = []
  try {
    for (const [part, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(part)) continue
      await mkdir(join(dir, part))
      figures.push(...(await measure({ ...options, dir: join(dir, part) })))
    }
    return figures
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function measureBinding(options: Scratch): Promise<Figure[]> {
  const bench = await openBench(options, [])
  try {
    return await measureBursts(bench, {
      name: 'bound to volumes made before',
      targets: BINDING,
      async prepare(burst) {
        await bench.fill({ ...burst, create: volumeOf(burst.className), until: '"phase":"Available"', watch: VOLUMES })
      },
    })
  } finally {
    await bench.close()
  }
}

async function measureInProcess(options: Scratch): Promise<Figure[]> {
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir: options.profileDir })
  const bench = await openBench(options, ['--driver-socket', socket])
  try {
    const prepare = ({ className }: Burst) => bench.post(CLASSES, classOf(className))
    const beside = { driver }
    return await measureBursts(bench, { name: 'provisioned in process', targets: PROVISIONING, prepare, beside })
  } finally {
    await bench.close()
    await driver.stop()
  }
}

async function measureAlone(options: Scratch): Promise<Figure[]> {
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir: options.profileDir })
  const bench = await openBench(options, [])
  const provisioner = await startProvisioner({ kubeconfig: bench.kubeconfig, socket, profileDir: options.profileDir })
  try {
    const prepare = ({ className }: Burst) => bench.post(CLASSES, classOf(className))
    const name = 'provisioned by a process of its own'
    return await measureBursts(bench, { name, targets: PROVISIONING, prepare, beside: { provisioner, driver } })
  } finally {
    await provisioner.stop()
    await bench.close()
    await driver.stop()
  }
}

interface Way {
  readonly name: string
  readonly targets: Targets
  /** What must be there before the claims come. */
  prepare(burst: Burst): Promise<void>
  /** Processes that work for it beside the server. */
  readonly beside?: Readonly<Record<string, Pick<Program, 'cpuMs'>>>
}

interface Burst {
  readonly namespace: string
  readonly className: string
  readonly count: number
  readonly after: number
}

async function measureBursts(bench: Bench, { name, targets, prepare, beside = {} }: Way): Promise<Figure[]> {
  const processes = Object.entries({ server: bench, ...beside })
  const figures: Figure[] = []
  for (const count of [WARM_UP_CLAIMS, ...BURSTS]) {
    bench.progress(`${name}, ${count === WARM_UP_CLAIMS ? 'warming up' : `a burst of ${count.toLocaleString('en')}`}`)
    const isTarget = count === TARGET_BURST
    const cpuMs = processes.map(() => 0)
    const addCpu = (sign: 1 | -1) => {
      for (const [index, [, one]] of processes.entries()) cpuMs[index]! += sign * one.cpuMs()
    }
    const rounds = await times(isTarget ? TARGET_ROUNDS : 1, async () => {
      const burst = await bench.nextBurst(count)
      await prepare(burst)
      addCpu(-1)
      const result = await bench.run(burst)
      addCpu(1)
      return result
    })
    const used = processes.map(([who], index) => `${who} ${(cpuMs[index]! / (count * rounds.length)).toFixed(2)} ms`)
    if (count === WARM_UP_CLAIMS) continue
    // The unavoidable part: as many durable creates of the same claims by the same clients, that nobody binds.
    const idleRounds = await times(rounds.length, async () =>
      bench.run({ ...(await bench.nextBurst(count)), className: '' }, '"phase":"Pending"'),
    )
    const [result, idle] = [middleOf(rounds), middleOf(idleRounds)]
    const what = `${count.toLocaleString('en')} claims ${name}`
    bench.note(`${what}: of the processors each took ${used.join(', ')}.`)
    const figure = (part: string, unit: 'ms' | '/s', value: number, limit: number, target: Target): Figure => ({
      name: `${what}${part}`,
      unit,
      value,
      limit: { value: limit, of: 'creates that nobody binds' },
      ...(isTarget ? { target } : {}),
    })
    figures.push(
      figure('', '/s', count / result.seconds, count / idle.seconds, { valueMin: targets.perSecondMin }),
      { name: `${what}, p50`, unit: 'ms', value: result.p50Ms, limit: { value: idle.p50Ms, of: 'the same' } },
      figure(', p99', 'ms', result.p99Ms, idle.p99Ms, { valueMax: targets.p99MsMax }),
    )
  }
  return figures
}

async function times<T>(count: number, run: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  while (results.length < count) results.push(await run())
  return results
}

const middleOf = (rounds: readonly BurstResult[]) => ({
  seconds: medianOf(rounds.map(({ seconds }) => seconds)),
  p50Ms: medianOf(rounds.map(({ p50Ms }) => p50Ms)),
  p99Ms: medianOf(rounds.map(({ p99Ms }) => p99Ms)),
})

interface Bench {
  readonly kubeconfig: string
  progress(text: string): void
  note(text: string): void
  cpuMs(): number
  post(path: string, body: object): Promise<void>
  /** A namespace and a class of its own, so that bursts do not meet. */
  nextBurst(count: number): Promise<Burst>
  /** Sends the claims; over when all of them show `until`. */
  run(burst: Burst, until?: string): Promise<BurstResult>
  fill(fill: Burst & { create: RequestText; watch: string; until: string }): Promise<BurstResult>
  close(): Promise<void>
}

async function openBench({ dir, profileDir, progress, note }: Scratch, flags: readonly string[]): Promise<Bench> {
  const dataDir = join(dir, 'data')
  const server = await startServer({ dataDir, profileDir, command: 'up', flags })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  let used = 0
  let names = 0

  async function post(path: string, body: object): Promise<void> {
    const connection = await openConnection(endpoint, () => {})
    const request = numberedRequest({ method: 'POST', path, body: JSON.stringify(body) })(0)
    const { status } = await new Promise<{ status: number }>((resolve) => connection.ask(request, resolve))
    connection.close()
    if (status >= 300) throw new Error(`POST ${path}: ${status}`)
  }

  return {
    kubeconfig: join(dataDir, 'admin.kubeconfig'),
    progress,
    note,
    cpuMs: server.cpuMs,
    post,
    async nextBurst(count) {
      const namespace = `burst-${++names}`
      await post('/api/v1/namespaces', { metadata: { name: namespace } })
      used += count
      return { namespace, className: `class-${names}`, count, after: used - count }
    },
    run: ({ namespace, className, count, after }, until = '"phase":"Bound"') => {
      const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
      const watch: RequestText = { method: 'GET', path: `${path}?watch=1` }
      const create: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(className)) }
      return bursts.run({ endpoint, clients: CLIENTS, count, after, create, watch, until })
    },
    fill: ({ count, after, create, watch, until }) =>
      bursts.run({
        endpoint,
        clients: CLIENTS,
        count,
        after,
        create,
        watch: { method: 'GET', path: `${watch}?watch=1` },
        until,
      }),
    async close() {
      bursts.stop()
      await server.stop()
    },
  }
}

const claimOf = (className: string) => {
  const { spec, ...rest } = claimNamed(`claim-${NUMBER}`)
  return { ...rest, spec: { ...spec, storageClassName: className } }
}

const classOf = (name: string) => ({ metadata: { name }, provisioner: DRIVER, parameters: { tier: 'fast' } })

const volumeOf = (className: string): RequestText => ({
  method: 'POST',
  path: VOLUMES,
  body: JSON.stringify({
    metadata: { name: `volume-${NUMBER}` },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: className,
      hostPath: { path: `/volumes/${NUMBER}` },
    },
  }),
})

async function measureMemory({ dir, progress }: Scratch): Promise<Figure[]> {
  progress(`caches of ${WEIGHED_PAIRS.toLocaleString('en')} claims and their volumes`)
  const start = () => startRole<ClientJob, any>('client', { nodeFlags: ['--expose-gc'] })
  const [server, client] = [start(), start()]
  try {
    const to = await server.run({ do: 'serve', store: 'memory', dir, claims: WEIGHED_PAIRS, withVolumes: true })
    await client.run({ do: 'connect', to })
    const { bytesPerPair, jsonBytes } = await client.run({ do: 'weighPairs' })
    return [
      {
        name: 'memory per cached claim and volume, over HTTP',
        unit: 'kB',
        value: bytesPerPair / 1000,
        limit: { value: jsonBytes / 1000, of: 'what is kept of them, as JSON' },
        target: { valueMax: PAIR_KB_MAX },
      },
    ]
  } finally {
    client.stop()
    server.stop()
  }
}
