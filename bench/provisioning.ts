// Measures binding and provisioning: bursts of claims sent over HTTPS to `stowage up` on a durable store, each timed
// from its create to the event that shows it Bound; and the memory of a cached claim and its volume.
//   binding     to existing volumes
//   inProcess   a driver that responds immediately, the provisioner in the server process
//   alone       the same with `stowage provisioner` as a separate process
//   journal     processor time of the server with the journal of volumes and without, in turns
//   lostNode    with 1,000 volumes of a lost node whose deletion fails, and 1,000 whose detach fails, and without, in turns
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { createFakeControl } from '../src/csi/fake/control-client.ts'
import { attacherFinalizerOf, NODE_ID_ANNOTATION } from '../src/volumes/attachment-names.ts'
import { PROVISIONED_BY } from '../src/volumes/names.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { buildClaim } from './lib/claims.ts'
import type { ClientJob } from './lib/client-role.ts'
import { type Comparison, type Figure, type GrowthPoint, medianOf, type Target } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type RequestText } from './lib/load-role.ts'
import { compareRounds, percentText, ratioText } from './lib/paired-ratio.ts'
import { deleteAll, post } from './lib/post.ts'
import { type Role, startRole } from './lib/role.ts'
import { type Program, startFakeDriver, startProvisioner, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Rounds by size of the burst: a burst takes seconds, and the speed of the machine changes between them. */
const BURSTS = { short: { 250: 2, 1000: 3, 3000: 1 }, long: { 250: 5, 1000: 5, 4000: 3, 10000: 1 } }
/** Smaller bursts only show how cost grows. */
const FIGURE_CLAIMS_MIN = 1_000
const WARM_UP_CLAIMS = 1_500
const CLIENTS = 128
/** The size of the burst to which the targets apply. */
const TARGET_BURST = 1_000
const BINDING = { perSecondMin: 1_000, p99MsMax: 1_200 }
const PROVISIONING = { perSecondMin: 500, p99MsMax: 2_500 }
const JOURNAL = {
  claims: 200,
  warmUpClaims: 2_000,
  short: { pairs: 1, rounds: 16 },
  long: { pairs: 6, rounds: 40 },
  /** Longer than the interval at which a server merges its journal. */
  mergeMs: 6_000,
  ratioMin: 0.98,
}
const LOST_NODE = { volumes: 1_000, claims: 400, warmUpClaims: 1_500, rounds: { short: 12, long: 40 }, ratioMin: 0.95 }
const PAIR_KB_MAX = 4
const CACHED_PAIRS = 20_000

const DRIVER = 'fake.csi.stowage.dev'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const VOLUMES = '/api/v1/persistentvolumes'
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'

type Targets = typeof BINDING

/** Figures of the volume controller and external-provisioner in stock clusters, limited by client-side rate limits. */
const PUBLISHED = {
  binding: {
    perSecond: { value: 30, of: 'the ceiling of binding in a stock cluster, kubernetes#140721' },
    p99: { value: 59_400, of: '1,000 claims and volumes at 100 requests/s, kubernetes#133352' },
  },
  provisioning: {
    perSecond: { value: 4, of: 'a fake driver in a stock cluster, default request rates, kubernetes#95497' },
  },
  memory: { value: (200 * 1_048.576) / 5_000, of: "a sidecar's memory per volume, external-provisioner#587" },
} satisfies Record<string, Record<string, Comparison> | Comparison>

export const provisioningSuite: Suite = {
  parts: {
    binding: measureBinding,
    inProcess: measureInProcess,
    alone: measureAlone,
    journal: measureJournal,
    lostNode: measureLostNode,
    memory: measureMemory,
  },
}

async function measureBinding(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, [])
  try {
    return await measureBursts(bench, {
      name: 'bound to existing volumes',
      targets: BINDING,
      published: PUBLISHED.binding,
      async prepare(burst) {
        await bench.fill({ ...burst, create: volumeOf(burst.className), until: '"phase":"Available"', watch: VOLUMES })
      },
    })
  } finally {
    await bench.close()
  }
}

async function measureInProcess(options: PartOptions): Promise<Figure[]> {
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir: options.profileDir })
  const bench = await openBench(options, ['--driver-socket', socket])
  try {
    const prepare = ({ className }: Burst) => bench.post(CLASSES, classOf(className))
    return await measureBursts(bench, {
      name: 'provisioned in process',
      targets: PROVISIONING,
      published: PUBLISHED.provisioning,
      prepare,
      otherProcesses: { driver },
    })
  } finally {
    await bench.close()
    await driver.stop()
  }
}

async function measureAlone(options: PartOptions): Promise<Figure[]> {
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir: options.profileDir })
  const bench = await openBench(options, [])
  const provisioner = await startProvisioner({ kubeconfig: bench.kubeconfig, socket, profileDir: options.profileDir })
  try {
    const prepare = ({ className }: Burst) => bench.post(CLASSES, classOf(className))
    return await measureBursts(bench, {
      name: 'provisioned by a separate process',
      targets: PROVISIONING,
      published: PUBLISHED.provisioning,
      prepare,
      otherProcesses: { provisioner, driver },
    })
  } finally {
    await provisioner.stop()
    await bench.close()
    await driver.stop()
  }
}

/**
 * Servers with and without the journal receive the same bursts in turns. The CPU time of a round is measured until the next
 * round, and includes later work such as merging the journal. Two processes of the same program can differ by some percent for
 * as long as they run, because V8 optimizes them differently. Therefore several pairs are measured, and each pair has a second
 * server without the journal: its ratio to the first shows how exact the measurement is.
 */
async function measureJournal(options: PartOptions): Promise<Figure[]> {
  const { pairs, rounds } = options.isLong ? JOURNAL.long : JOURNAL.short
  const results: JournalRounds[] = []
  for (let pair = 1; pair <= pairs; pair++) {
    const dir = join(options.dir, `pair-${pair}`)
    await mkdir(dir)
    const progress = (text: string) => options.progress(`servers ${pair} of ${pairs}: ${text}`)
    results.push(await measureJournalRounds({ ...options, dir, progress }, rounds))
  }
  const reference = results.flatMap(({ off }) => off)
  const compare = (name: keyof JournalRounds) =>
    compareRounds(
      results.flatMap((result) => result[name].map((value, round) => ({ value, reference: result.off[round]! }))),
    )
  const ratio = compare('on')
  const pairTexts = results.map(({ on, off }) =>
    percentText(compareRounds(on.map((value, round) => ({ value, reference: off[round]! }))).median),
  )
  options.note(
    `Server CPU time per provisioned claim with the journal: ${ratioText(ratio)}; by pair ${pairTexts.join(', ')} %.`,
  )
  options.note(`The same of a second server without the journal: ${ratioText(compare('alsoOff'))}.`)
  const withoutMs = medianOf(reference)
  return [
    {
      name: 'server CPU time per provisioned claim, with the journal',
      unit: 'ms',
      value: withoutMs * ratio.median,
      limit: { value: withoutMs, of: 'the same with --journal off, in turns' },
      target: { ratioMin: JOURNAL.ratioMin },
    },
  ]
}

/** CPU time per claim in each round. */
type JournalRounds = Readonly<Record<'on' | 'off' | 'alsoOff', readonly number[]>>

async function measureJournalRounds(options: PartOptions, rounds: number): Promise<JournalRounds> {
  const servers: {
    readonly name: string
    readonly bench: Bench
    readonly driver: Program
    readonly cpuMs: number[]
  }[] = []
  try {
    for (const name of ['on', 'off', 'alsoOff']) {
      const dir = join(options.dir, name)
      await mkdir(dir)
      const socket = join(dir, 'csi.sock')
      const driver = await startFakeDriver({ socket, name: DRIVER, profileDir: options.profileDir })
      const flags = ['--driver-socket', socket, '--journal', name === 'on' ? 'on' : 'off']
      servers.push({ name, bench: await openBench({ ...options, dir }, flags), driver, cpuMs: [] })
    }
    const run = async ({ bench }: (typeof servers)[number], claims: number) => {
      const burst = await bench.nextBurst(claims)
      await bench.post(CLASSES, classOf(burst.className))
      await bench.run(burst)
    }
    options.progress('warming up')
    for (const server of servers) await run(server, JOURNAL.warmUpClaims)
    options.progress(`${rounds} rounds of ${JOURNAL.claims} claims on each server`)
    for (let round = 0; round < rounds; round++) {
      for (const server of round % 2 === 0 ? servers : [...servers].reverse()) {
        server.cpuMs.push(server.bench.cpuMs())
        await run(server, JOURNAL.claims)
      }
    }
    await sleep(JOURNAL.mergeMs)
    const entries = servers.map(({ name, bench, cpuMs }) => {
      const ends = [...cpuMs.slice(1), bench.cpuMs()]
      return [name, cpuMs.map((startMs, round) => (ends[round]! - startMs) / JOURNAL.claims)]
    })
    return Object.fromEntries(entries)
  } finally {
    for (const { bench, driver } of servers) {
      await bench.close()
      await driver.stop()
    }
  }
}

/**
 * Two servers receive the same bursts in turns. One has the volumes of a lost node, which its driver can neither delete nor detach. The
 * measurement starts with their first attempts, because later ones are rarer.
 */
async function measureLostNode(options: PartOptions): Promise<Figure[]> {
  const rounds = options.isLong ? LOST_NODE.rounds.long : LOST_NODE.rounds.short
  const servers: {
    readonly bench: Bench
    readonly driver: Program
    readonly seconds: number[]
    readonly cpuMs: number[]
  }[] = []
  try {
    for (const name of ['with', 'without']) {
      const dir = join(options.dir, name)
      await mkdir(dir)
      const [socket, control] = [join(dir, 'csi.sock'), join(dir, 'control.sock')]
      const driver = await startFakeDriver({ socket, control, name: DRIVER, profileDir: options.profileDir })
      const bench = await openBench({ ...options, dir }, ['--driver-socket', socket])
      servers.push({ bench, driver, seconds: [], cpuMs: [] })
      if (name === 'with') {
        const effect = { do: 'fail', code: 'UNAVAILABLE', message: 'the node does not answer' } as const
        const methods = ['DeleteVolume', 'ControllerUnpublishVolume']
        await createFakeControl(control).setRules(methods.map((method) => ({ method, effect })))
      }
    }
    const run = async ({ bench }: (typeof servers)[number], claims: number) => {
      const burst = await bench.nextBurst(claims)
      await bench.post(CLASSES, classOf(burst.className))
      return bench.run(burst)
    }
    options.progress('warming up')
    for (const server of servers) await run(server, LOST_NODE.warmUpClaims)
    options.progress(`losing a node with ${formatCount(2 * LOST_NODE.volumes)} volumes`)
    await loseNode(servers[0]!.bench)
    options.progress(`${rounds} rounds of ${LOST_NODE.claims} claims on each server`)
    for (let round = 0; round < rounds; round++) {
      for (const server of round % 2 === 0 ? servers : [...servers].reverse()) {
        server.cpuMs.push(server.bench.cpuMs())
        server.seconds.push((await run(server, LOST_NODE.claims)).seconds)
      }
    }
    for (const { bench, cpuMs } of servers) cpuMs.push(bench.cpuMs())
  } finally {
    for (const { bench, driver } of servers) {
      await bench.close()
      await driver.stop()
    }
  }
  const [lost, reference] = servers
  const compare = (measure: (server: (typeof servers)[number], round: number) => number) =>
    compareRounds(
      lost!.seconds.map((_, round) => ({ value: measure(lost!, round), reference: measure(reference!, round) })),
    )
  const rate = compare(({ seconds }, round) => LOST_NODE.claims / seconds[round]!)
  const cpu = compare(({ cpuMs }, round) => cpuMs[round + 1]! - cpuMs[round]!)
  options.note(
    `Claims per second with ${formatCount(2 * LOST_NODE.volumes)} volumes of a lost node: ${ratioText(rate)}.`,
  )
  options.note(`Server CPU time for the same, with the failing attempts between the rounds: ${ratioText(cpu)}.`)
  const without = LOST_NODE.claims / medianOf(reference!.seconds)
  return [
    {
      name: `claims provisioned with ${formatCount(2 * LOST_NODE.volumes)} volumes of a lost node`,
      unit: '/s',
      value: without * rate.median,
      limit: { value: without, of: 'the same without them, in turns' },
      target: { ratioMin: LOST_NODE.ratioMin },
    },
  ]
}

/** Creates released volumes of a lost node, and volumes whose attachments to it are being deleted. */
async function loseNode(bench: Bench): Promise<void> {
  const fill = (burst: Burst, path: string, until: string, body: object) =>
    bench.fill({ ...burst, create: { method: 'POST', path, body: JSON.stringify(body) }, watch: path, until })
  const volume = (name: string, policy: string) => ({
    metadata: { name, annotations: { [PROVISIONED_BY]: DRIVER } },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: policy,
      claimRef: { namespace: 'default', name, uid: name },
      csi: { driver: DRIVER, volumeHandle: name },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'node', operator: 'In', values: ['lost'] }] }] },
      },
    },
  })
  const attached = await bench.nextBurst(LOST_NODE.volumes)
  await fill(attached, VOLUMES, '"phase":"Released"', volume(`attached-${NUMBER}`, 'Retain'))
  await fill(attached, ATTACHMENTS, '"attacher"', {
    metadata: {
      name: `attachment-${NUMBER}`,
      finalizers: [attacherFinalizerOf(DRIVER)],
      annotations: { [NODE_ID_ANNOTATION]: 'lost' },
    },
    spec: { attacher: DRIVER, nodeName: 'lost', source: { persistentVolumeName: `attached-${NUMBER}` } },
  })
  const released = await bench.nextBurst(LOST_NODE.volumes)
  await fill(released, VOLUMES, '"phase":"Released"', volume(`released-${NUMBER}`, 'Delete'))
  await bench.deleteAll(ATTACHMENTS)
}

interface Scenario {
  readonly name: string
  readonly targets: Targets
  readonly published: { readonly perSecond: Comparison; readonly p99?: Comparison }
  /** Creates the objects that the claims of a burst need. */
  prepare(burst: Burst): Promise<void>
  /** Further processes whose CPU time is reported. */
  readonly otherProcesses?: Readonly<Record<string, Pick<Program, 'cpuMs'>>>
}

interface Burst {
  readonly namespace: string
  readonly className: string
  readonly count: number
  readonly after: number
}

async function measureBursts(bench: Bench, scenario: Scenario): Promise<Figure[]> {
  const { name, prepare, otherProcesses = {} } = scenario
  const processes = Object.entries({ server: bench, ...otherProcesses })
  const figures: Figure[] = []
  const points: GrowthPoint[] = []
  bench.progress('warming up')
  const warmUp = await bench.nextBurst(WARM_UP_CLAIMS)
  await prepare(warmUp)
  await bench.run(warmUp)
  for (const [claims, roundCount] of Object.entries(bench.bursts)) {
    const size = Number(claims)
    bench.progress(`a burst of ${formatCount(size)}${roundCount > 1 ? `, ${roundCount} times` : ''}`)
    const cpuMs = processes.map(() => 0)
    const addCpu = (sign: 1 | -1) => {
      for (const [index, [, program]] of processes.entries()) cpuMs[index]! += sign * program.cpuMs()
    }
    const rounds = await repeat(roundCount, async () => {
      const burst = await bench.nextBurst(size)
      await prepare(burst)
      addCpu(-1)
      const result = await bench.run(burst)
      addCpu(1)
      return result
    })
    const result = mediansOf(rounds)
    points.push({ size, ms: result.seconds * 1_000 })
    if (size < FIGURE_CLAIMS_MIN) continue
    // The limit: the same clients create as many of the same claims durably, in a class whose claims are never bound.
    const idleRounds = await repeat(roundCount, async () =>
      bench.run({ ...(await bench.nextBurst(size)), className: '' }, '"phase":"Pending"'),
    )
    const cpuTexts = processes.map(
      ([processName], index) => `${processName} ${(cpuMs[index]! / (size * roundCount)).toFixed(2)} ms`,
    )
    bench.note(`${formatCount(size)} claims ${name}: CPU time per claim: ${cpuTexts.join(', ')}.`)
    figures.push(...figuresOf(scenario, { claims: size, result, idle: mediansOf(idleRounds) }))
  }
  return [...figures, toTotalGrowthFigure(`claims ${name}`, { of: 'claims', points })]
}

interface BurstMeasurement {
  readonly claims: number
  readonly result: Medians
  readonly idle: Medians
}

function figuresOf({ name, targets, published }: Scenario, { claims, result, idle }: BurstMeasurement): Figure[] {
  const description = `${formatCount(claims)} claims ${name}`
  const limit = (value: number): Comparison => ({ value, of: 'the creates alone' })
  const withTarget = (target: Target, peer: Comparison | undefined): Partial<Figure> =>
    claims === TARGET_BURST ? { target, ...(peer ? { peer } : {}) } : {}
  return [
    {
      name: description,
      unit: '/s',
      value: claims / result.seconds,
      limit: limit(claims / idle.seconds),
      ...withTarget({ valueMin: targets.perSecondMin }, published.perSecond),
    },
    { name: `${description}, p50`, unit: 'ms', value: result.p50Ms, limit: limit(idle.p50Ms) },
    {
      name: `${description}, p99`,
      unit: 'ms',
      value: result.p99Ms,
      limit: limit(idle.p99Ms),
      ...withTarget({ valueMax: targets.p99MsMax }, published.p99),
    },
  ]
}

async function repeat<T>(count: number, run: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  while (results.length < count) results.push(await run())
  return results
}

type Medians = Pick<BurstResult, 'seconds' | 'p50Ms' | 'p99Ms'>

const mediansOf = (rounds: readonly BurstResult[]): Medians => ({
  seconds: medianOf(rounds.map(({ seconds }) => seconds)),
  p50Ms: medianOf(rounds.map(({ p50Ms }) => p50Ms)),
  p99Ms: medianOf(rounds.map(({ p99Ms }) => p99Ms)),
})

interface Bench {
  readonly kubeconfig: string
  /** Rounds by size. */
  readonly bursts: Readonly<Record<number, number>>
  progress(text: string): void
  note(text: string): void
  cpuMs(): number
  post(path: string, body: object): Promise<void>
  /** Deletes all objects of a collection. */
  deleteAll(path: string): Promise<void>
  /** Each burst has its own namespace and class. */
  nextBurst(count: number): Promise<Burst>
  /** Sends the claims; resolves when an event of each contains `until`. */
  run(burst: Burst, until?: string): Promise<BurstResult>
  fill(fill: Burst & { create: RequestText; watch: string; until: string }): Promise<BurstResult>
  close(): Promise<void>
}

async function openBench(options: PartOptions, flags: readonly string[]): Promise<Bench> {
  const { dir, profileDir, isLong, progress, note } = options
  const dataDir = join(dir, 'data')
  const server = await startServer({ dataDir, profileDir, command: 'up', flags })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  let usedCount = 0
  let nameCount = 0

  return {
    kubeconfig: join(dataDir, 'admin.kubeconfig'),
    bursts: isLong ? BURSTS.long : BURSTS.short,
    progress,
    note,
    cpuMs: server.cpuMs,
    post: (path, body) => post(endpoint, path, body),
    deleteAll: (path) => deleteAll(endpoint, path),
    async nextBurst(claims) {
      const namespace = `burst-${++nameCount}`
      await post(endpoint, '/api/v1/namespaces', { metadata: { name: namespace } })
      usedCount += claims
      return { namespace, className: `class-${nameCount}`, count: claims, after: usedCount - claims }
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
  const { spec, ...fields } = buildClaim(`claim-${NUMBER}`)
  return { ...fields, spec: { ...spec, storageClassName: className } }
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

async function measureMemory({ dir, progress }: PartOptions): Promise<Figure[]> {
  progress(`caches of ${formatCount(CACHED_PAIRS)} claims and their volumes`)
  // biome-ignore lint/suspicious/noExplicitAny: the type of a result depends on its job, which a role cannot express
  const start = () => startRole<ClientJob, any>('client', { nodeFlags: ['--expose-gc'] })
  const [server, client] = [start(), start()]
  try {
    const address = await server.run({ do: 'serve', store: 'memory', dir, claims: CACHED_PAIRS, withVolumes: true })
    await client.run({ do: 'connect', to: address })
    const { bytesPerPair, jsonBytes } = await client.run({ do: 'measurePairMemory' })
    return [
      {
        name: 'memory per cached claim and volume, over HTTP',
        unit: 'kB',
        value: bytesPerPair / 1000,
        limit: { value: jsonBytes / 1000, of: 'the cached fields as JSON' },
        target: { valueMax: PAIR_KB_MAX },
        peer: PUBLISHED.memory,
      },
    ]
  } finally {
    client.stop()
    server.stop()
  }
}
