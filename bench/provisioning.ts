// Measures binding and provisioning: bursts of claims sent over HTTPS to `stowage up` on a durable store, each timed
// from its create to the event that shows it Bound; and the memory of a cached claim and its volume.
//   binding     to existing volumes
//   inProcess   a driver that responds immediately, the provisioner in the server process
//   alone       the same with `stowage provisioner` as a separate process
//   warmUp      in process, the first claims after a start compared with later ones
//   journal     what the journal of volumes adds to the processor time of the server
//   lostNode    in process, alternately without a lost node and with one whose driver fails to delete 1,000 volumes and to detach
//               1,000 others
//   memory      caches of claims and their volumes
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { OUT_OF_SERVICE_TAINT } from '../src/api/kinds/node/fencing.ts'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { createFakeControl } from '../src/csi/fake/control-client.ts'
import { attacherFinalizerOf, NODE_ID_ANNOTATION } from '../src/volumes/attachment-names.ts'
import { PROVISIONED_BY } from '../src/volumes/names.ts'
import type { BurstJob, BurstResult, OpenBurstJob } from './lib/burst-role.ts'
import { buildClaim } from './lib/claims.ts'
import type { ClientJob } from './lib/client-role.ts'
import { type Comparison, type Figure, type GrowthPoint, medianOf, type Target } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { startJournalServer } from './lib/journal-cost.ts'
import type { ReplayTimes } from './lib/journal-replay.ts'
import type { RoundUsage } from './lib/journal-role.ts'
import { type ProfileShares, partsOf } from './lib/journal-share.ts'
import { NUMBER, type RequestText } from './lib/load-role.ts'
import { compareRounds, type PairedRound, ratioText } from './lib/paired-ratio.ts'
import { deleteAll, post } from './lib/post.ts'
import { type Role, startRole } from './lib/role.ts'
import { type Program, startFakeDriver, startProvisioner, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Rounds by size of the burst: a burst takes seconds, and the speed of the machine changes between bursts. */
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
  /** A new connection costs as much as a claim, so more clients would hide the cost of the journal. */
  clients: 32,
  claims: 400,
  warmUpRounds: 6,
  short: { rounds: 8, replays: 40, profiledClaims: 3_000 },
  long: { rounds: 120, replays: 200, profiledClaims: 20_000 },
  ratioMin: 0.98,
}
const WARM_UP = {
  /** A new connection costs as much as a claim, so more clients would hide the difference. */
  clients: 32,
  claims: 200,
  /** Bursts of a server: the first is compared with the median of the last ones. */
  bursts: 9,
  laterBursts: 4,
  /** The time between a start and the first claims. A server that is idle then warms itself up. */
  delaysMs: { 'right after a start': 0, '3 s after a start': 3_000 },
  /** For each delay. The first start is not counted: it warms up the driver and the clients. */
  starts: { short: 4, long: 10 },
  ratioMin: 1 / 1.3,
}
const LOST_NODE = { volumes: 1_000, claims: 400, warmUpClaims: 1_500, rounds: { short: 12, long: 40 }, ratioMin: 0.95 }
const PAIR_KB_MAX = 4
const CACHED_PAIRS = 20_000

/** The calls that fail for the volumes of a lost node. */
const FAILING_METHODS: readonly string[] = ['DeleteVolume', 'ControllerUnpublishVolume']

const DRIVER = 'fake.csi.stowage.dev'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const VOLUMES = '/api/v1/persistentvolumes'
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'

type Targets = typeof BINDING

/** Figures of the volume controller and external-provisioner in stock clusters, whose rates are limited by their clients. */
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
    warmUp: measureWarmUp,
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

/** Measures the first claims after a start. Driver and clients serve all starts, so that only the servers are cold. */
async function measureWarmUp(options: PartOptions): Promise<Figure[]> {
  const starts = options.isLong ? WARM_UP.starts.long : WARM_UP.starts.short
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER })
  const bursts: Role<BurstJob | OpenBurstJob | 'run', BurstResult> = startRole('burst')
  const rounds: WarmUpRound[] = []
  try {
    for (let start = 1; start <= starts; start++) {
      for (const [when, delayMs] of Object.entries(WARM_UP.delaysMs)) {
        options.progress(`start ${start} of ${starts}, claims ${when}`)
        const dir = join(options.dir, `start-${start}-${delayMs}`)
        const costs = await measureFirstBursts({ ...options, dir }, { socket, bursts, delayMs })
        const later = costs.slice(-WARM_UP.laterBursts)
        const medianLater = {
          ms: medianOf(later.map(({ ms }) => ms)),
          cpuMs: medianOf(later.map(({ cpuMs }) => cpuMs)),
        }
        if (start > 1) rounds.push({ when, first: costs[0]!, later: medianLater })
      }
    }
  } finally {
    bursts.stop()
    await driver.stop()
  }
  return Object.keys(WARM_UP.delaysMs).flatMap((when) =>
    warmUpFigures(
      when,
      rounds.filter((round) => round.when === when),
    ),
  )
}

interface WarmUpRound {
  /** A key of WARM_UP.delaysMs. */
  readonly when: string
  readonly first: BurstCost
  /** The median of later bursts. */
  readonly later: BurstCost
}

function warmUpFigures(when: string, rounds: readonly WarmUpRound[]): Figure[] {
  return (['ms', 'cpuMs'] as const).map((cost) => {
    // The median of the ratios, because the speed of the machine changes between starts.
    const ratio = medianOf(rounds.map(({ first, later }) => first[cost] / later[cost]))
    const later = medianOf(rounds.map((round) => round.later[cost]))
    return {
      name: `first ${WARM_UP.claims} claims ${when}${cost === 'ms' ? '' : ', server CPU time'}`,
      unit: 'ms',
      value: later * ratio,
      limit: { value: later, of: 'the same later on the same server' },
      target: { ratioMin: WARM_UP.ratioMin },
    }
  })
}

interface BurstCost {
  readonly ms: number
  /** CPU time of the server. */
  readonly cpuMs: number
}

interface FirstBursts {
  /** The socket of the driver. */
  readonly socket: string
  readonly bursts: Role<BurstJob | OpenBurstJob | 'run', BurstResult>
  readonly delayMs: number
}

async function measureFirstBursts(
  { dir, profileDir }: PartOptions,
  { socket, bursts, delayMs }: FirstBursts,
): Promise<BurstCost[]> {
  const server = await startServer({ dataDir: dir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  try {
    await systemClock().sleep(delayMs)
    const endpoint = await adminEndpointOf({ port: server.port, dataDir: dir })
    await post(endpoint, CLASSES, classOf('fast'))
    const costs: BurstCost[] = []
    while (costs.length < WARM_UP.bursts) {
      const namespace = `burst-${costs.length}`
      await post(endpoint, '/api/v1/namespaces', { metadata: { name: namespace } })
      const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
      await bursts.run({
        do: 'open',
        endpoint,
        clients: WARM_UP.clients,
        count: WARM_UP.claims,
        after: costs.length * WARM_UP.claims,
        request: { method: 'POST', path, body: JSON.stringify(claimOf('fast')) },
        watch: { method: 'GET', path: `${path}?watch=1` },
        until: '"phase":"Bound"',
      })
      const startCpuMs = server.cpuMs()
      const { seconds } = await bursts.run('run')
      costs.push({ ms: seconds * 1_000, cpuMs: server.cpuMs() - startCpuMs })
    }
    return costs
  } finally {
    await server.stop()
  }
}

/**
 * Measures the journal in three ways: replays of transactions with and without it (journal-replay.ts), its share in profiles
 * (journal-share.ts), and rounds of a server whose journal is switched on and off. A third of these rounds repeats those without
 * the journal: the ratio of the two shows how precise the rounds are.
 */
async function measureJournal(options: PartOptions): Promise<Figure[]> {
  const { rounds, replays, profiledClaims } = options.isLong ? JOURNAL.long : JOURNAL.short
  const socket = join(options.dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER })
  const server = await startJournalServer({ dir: options.dir, driverSocket: socket })
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const endpoint = await adminEndpointOf(server)
  let count = 0
  const prepareBurst = async (claims: number): Promise<() => Promise<void>> => {
    const after = count
    count += claims
    const namespace = `burst-${count}`
    await post(endpoint, '/api/v1/namespaces', { metadata: { name: namespace } })
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
    const watch: RequestText = { method: 'GET', path: `${path}?watch=1` }
    const request: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf('fast')) }
    const job = { endpoint, clients: JOURNAL.clients, count: claims, after, request, watch, until: '"phase":"Bound"' }
    return async () => void (await bursts.run(job))
  }
  const usages: Record<JournalRound, RoundUsage[]> = { on: [], off: [], alsoOff: [] }
  try {
    await post(endpoint, CLASSES, classOf('fast'))
    options.progress('warming up')
    for (let round = 0; round < JOURNAL.warmUpRounds; round++)
      await server.round(round % 2 === 0, await prepareBurst(JOURNAL.claims))
    options.progress(`${rounds} times three rounds of ${JOURNAL.claims} claims`)
    for (let round = 0; round < rounds; round++) {
      for (const name of JOURNAL_ORDERS[round % JOURNAL_ORDERS.length]!)
        usages[name].push(await server.round(name === 'on', await prepareBurst(JOURNAL.claims)))
    }
    options.progress(`profiles of ${formatCount(profiledClaims)} claims`)
    const [timed, allocated] = [await prepareBurst(profiledClaims), await prepareBurst(profiledClaims)]
    let shares: ProfileShares | undefined
    await server.round(true, async () => {
      shares = await server.profile(timed, allocated)
    })
    options.progress(`${replays} replays of ${JOURNAL.claims} claims`)
    const times = await server.replay(await prepareBurst(JOURNAL.claims), replays)
    return journalFigures({ usages, shares: shares!, times }, options.note)
  } finally {
    bursts.stop()
    await server.stop()
    await driver.stop()
  }
}

type JournalRound = 'on' | 'off' | 'alsoOff'

/** Each kind of round comes first as often as it comes last. */
const JOURNAL_ORDERS: readonly (readonly JournalRound[])[] = [
  ['on', 'off', 'alsoOff'],
  ['alsoOff', 'off', 'on'],
  ['off', 'on', 'alsoOff'],
  ['alsoOff', 'on', 'off'],
]

interface JournalMeasurement {
  readonly usages: Readonly<Record<JournalRound, readonly RoundUsage[]>>
  readonly shares: ProfileShares
  readonly times: ReplayTimes
}

function journalFigures({ usages, shares, times }: JournalMeasurement, note: (text: string) => void): Figure[] {
  const { on, off, alsoOff } = usages
  const perClaim = (rounds: readonly RoundUsage[], key: keyof RoundUsage) =>
    rounds.reduce((sum, usage) => sum + usage[key], 0) / rounds.length / JOURNAL.claims
  const withoutMs = medianOf([...off, ...alsoOff].map(({ cpuMs }) => cpuMs)) / JOURNAL.claims
  const replayedMs =
    medianOf(times.withJournalMs.map((ms, round) => ms - times.withoutJournalMs[round]!)) / JOURNAL.claims
  const byteShare = perClaim(on, 'recordBytes') / perClaim(on, 'writtenBytes')
  const parts = partsOf(shares, byteShare)
  const share = parts.functions + parts.collection + parts.commits
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`
  const kilobytes = (rounds: readonly RoundUsage[]) => `${(perClaim(rounds, 'writtenBytes') / 1_000).toFixed(1)} kB`
  note(
    `Journal by replay: ${(replayedMs * 1_000).toFixed(0)} µs per claim of ${(withoutMs * 1_000).toFixed(0)} µs without it ` +
      `(${percent(replayedMs / withoutMs)}); replays with it: ${ratioText(compareRounds(pairsOf(times.withJournalMs, times.withoutJournalMs)))}.`,
  )
  note(
    `Journal by profile: ${percent(share)} of the main thread: its functions ${percent(parts.functions)}, its share of garbage ` +
      `collection ${percent(parts.collection)} (${percent(shares.allocations)} of allocations), its share of writing commits ` +
      `${percent(parts.commits)} (${percent(byteShare)} of bytes).`,
  )
  note(
    `Journal by rounds in one process: ${ratioText(compareRounds(pairsOf(on.map(cpuOf), off.map(cpuOf))))}; two rounds without it: ` +
      `${ratioText(compareRounds(pairsOf(alsoOff.map(cpuOf), off.map(cpuOf))))}.`,
  )
  note(
    `The journal writes ${perClaim(on, 'records').toFixed(1)} records of ${perClaim(on, 'recordBytes').toFixed(0)} bytes per claim, ` +
      `in ${perClaim(on, 'chunks').toFixed(2)} chunks; the server ${kilobytes(on)} per claim with it and ${kilobytes(off)} without.`,
  )
  const name = 'server CPU time per provisioned claim, with the journal'
  const withMs = withoutMs + replayedMs
  const target = { ratioMin: JOURNAL.ratioMin }
  return [
    {
      name: `${name} by replay`,
      unit: 'ms',
      value: withMs,
      limit: { value: withoutMs, of: 'the same without it' },
      target,
    },
    {
      name: `${name} by profile`,
      unit: 'ms',
      value: withoutMs / (1 - share),
      limit: { value: withoutMs, of: 'the same without it' },
      target,
    },
  ]
}

const cpuOf = ({ cpuMs }: RoundUsage): number => cpuMs

const pairsOf = (values: readonly number[], references: readonly number[]): PairedRound[] =>
  values.map((value, round) => ({ value, reference: references[round]! }))

/**
 * Two servers with the same volumes receive the same bursts in turns. In one of them the node of the volumes is lost, and the
 * driver can neither delete nor detach them. The measurement starts with the first failing attempts, because later ones are
 * rarer.
 */
async function measureLostNode(options: PartOptions): Promise<Figure[]> {
  const rounds = options.isLong ? LOST_NODE.rounds.long : LOST_NODE.rounds.short
  const servers: {
    readonly bench: Bench
    readonly driver: Program
    readonly seconds: number[]
    readonly cpuMs: number[]
  }[] = []
  let failedCalls = ''
  try {
    for (const name of ['with', 'without']) {
      const dir = join(options.dir, name)
      await mkdir(dir)
      const [socket, control] = [join(dir, 'csi.sock'), join(dir, 'control.sock')]
      const driver = await startFakeDriver({ socket, control, name: DRIVER, profileDir: options.profileDir })
      const bench = await openBench({ ...options, dir }, ['--driver-socket', socket])
      servers.push({ bench, driver, seconds: [], cpuMs: [] })
      if (name === 'with') {
        const effect = { do: 'fail', code: 'UNAVAILABLE', message: 'the node does not respond' } as const
        await createFakeControl(control).setRules(FAILING_METHODS.map((method) => ({ method, effect })))
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
    for (const [index, { bench }] of servers.entries()) await fillNode(bench, { isLost: index === 0 })
    options.progress(`${rounds} rounds of ${LOST_NODE.claims} claims on each server`)
    for (let round = 0; round < rounds; round++) {
      for (const server of round % 2 === 0 ? servers : [...servers].reverse()) {
        server.cpuMs.push(server.bench.cpuMs())
        server.seconds.push((await run(server, LOST_NODE.claims)).seconds)
      }
    }
    for (const { bench, cpuMs } of servers) cpuMs.push(bench.cpuMs())
    const { calls } = await createFakeControl(join(options.dir, 'with', 'control.sock')).inspect()
    const failedCount = calls.filter(({ method }) => FAILING_METHODS.includes(method)).length
    failedCalls = `${formatCount(failedCount)} of the last ${formatCount(calls.length)} calls to the driver failed`
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
  options.note(
    `Server CPU time for the same, with the failing attempts between the rounds: ${ratioText(cpu)}; ` +
      `${failedCalls}.`,
  )
  const without = LOST_NODE.claims / medianOf(reference!.seconds)
  return [
    {
      name: `claims provisioned with ${formatCount(2 * LOST_NODE.volumes)} volumes of a lost node`,
      unit: '/s',
      value: without * rate.median,
      limit: { value: without, of: 'the same without the loss, in turns' },
      target: { ratioMin: LOST_NODE.ratioMin },
    },
  ]
}

/**
 * Creates a node with released volumes, half of them attached. If the node is lost, the attached ones are being detached and the
 * others are being deleted.
 */
async function fillNode(bench: Bench, { isLost }: { readonly isLost: boolean }): Promise<void> {
  await bench.post('/api/v1/nodes', {
    metadata: { name: 'lost' },
    spec: isLost ? { taints: [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }] } : {},
    status: { conditions: [{ type: 'Ready', status: isLost ? 'Unknown' : 'True', reason: 'Set' }] },
  })
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
  await fill(released, VOLUMES, '"phase":"Released"', volume(`released-${NUMBER}`, isLost ? 'Delete' : 'Retain'))
  if (isLost) await bench.deleteAll(ATTACHMENTS)
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
    // The limit: the same clients create as many of the same claims durably, but without a class, so that they are never bound.
    const createRounds = await repeat(roundCount, async () =>
      bench.run({ ...(await bench.nextBurst(size)), className: '' }, '"phase":"Pending"'),
    )
    const cpuTexts = processes.map(
      ([processName], index) => `${processName} ${(cpuMs[index]! / (size * roundCount)).toFixed(2)} ms`,
    )
    bench.note(`${formatCount(size)} claims ${name}: CPU time per claim: ${cpuTexts.join(', ')}.`)
    figures.push(...figuresOf(scenario, { claims: size, result, creates: mediansOf(createRounds) }))
  }
  return [...figures, toTotalGrowthFigure(`claims ${name}`, { of: 'claims', points })]
}

interface BurstMeasurement {
  readonly claims: number
  readonly result: Medians
  readonly creates: Medians
}

function figuresOf({ name, targets, published }: Scenario, { claims, result, creates }: BurstMeasurement): Figure[] {
  const description = `${formatCount(claims)} claims ${name}`
  const limit = (value: number): Comparison => ({ value, of: 'the creates alone' })
  const withTarget = (target: Target, peer: Comparison | undefined): Partial<Figure> =>
    claims === TARGET_BURST ? { target, ...(peer ? { peer } : {}) } : {}
  return [
    {
      name: description,
      unit: '/s',
      value: claims / result.seconds,
      limit: limit(claims / creates.seconds),
      ...withTarget({ valueMin: targets.perSecondMin }, published.perSecond),
    },
    { name: `${description}, p50`, unit: 'ms', value: result.p50Ms, limit: limit(creates.p50Ms) },
    {
      name: `${description}, p99`,
      unit: 'ms',
      value: result.p99Ms,
      limit: limit(creates.p99Ms),
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
  const endpoint = await adminEndpointOf({ port: server.port, dataDir })
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
      const request: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(className)) }
      return bursts.run({ endpoint, clients: CLIENTS, count, after, request, watch, until })
    },
    fill: ({ count, after, create, watch, until }) =>
      bursts.run({
        endpoint,
        clients: CLIENTS,
        count,
        after,
        request: create,
        watch: { method: 'GET', path: `${watch}?watch=1` },
        until,
      }),
    async close() {
      bursts.stop()
      await server.stop()
    },
  }
}

async function adminEndpointOf({
  port,
  dataDir,
}: {
  readonly port: number
  readonly dataDir: string
}): Promise<Endpoint> {
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  return { port, ca: pki.caCert, ...pki.admin }
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
