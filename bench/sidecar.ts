// Compares `stowage sidecar` with upstream's csi-provisioner, csi-resizer and csi-attacher on kube-apiserver and etcd, with
// csi-driver-host-path and a cluster of bound claims and pods. STOWAGE_UPSTREAM names the directory of their programs.
//
// A round freezes the driver, creates claims, and continues the driver. It is timed from then until the last volume is created,
// so that both sides start with the same backlog. The limit is what the API server accepts from a load generator that creates
// the same volumes and events and does nothing else.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AuditedRequest, countRequests, isPerVolume, readAuditLog } from './lib/audit-log.ts'
import { type ChildProgram, startChildProgram } from './lib/child-program.ts'
import { countObjects, sendAll } from './lib/cluster-requests.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { type LoadResult, NUMBER, type RequestsJob, type RequestText } from './lib/load-role.ts'
import { profileFlags } from './lib/profiles.ts'
import { startRole } from './lib/role.ts'
import { type StockCluster, startStockCluster } from './lib/stock-cluster.ts'
import {
  boundClaimRequests,
  buildEvent,
  buildVolume,
  DRIVER_NODE,
  newClaimRequests,
  podRequests,
  setupRequests,
} from './lib/stock-objects.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const BOUND_CLAIMS = 5_000
const PODS = 2_000
const CLAIMS = 1_000
const WARM_UP_CLAIMS = 200
const WORKERS = 100
const ROUNDS = 2
const ROUNDS_LONG = 5
const CLIENTS = 64
const LIMIT_MEASURE_MS = 5_000
/** A round ends when no event has been created for this long. */
const QUIET_MS = 3_000
const ROUND_MS_MAX = 120_000
/** Requests are counted from this long before the driver continues: sidecars send the first ones once the claims are created. */
const REQUESTS_BEFORE_MS = 5_000
const POLL_INTERVAL_MS = 100

export const sidecarSuite: Suite = { isOptional: true, parts: { provisioning: measureSidecars } }

/** The programs of one side, by name. */
type Sidecars = Readonly<Record<string, ChildProgram>>

interface Side {
  readonly user: string
  start(context: RoundContext): Promise<Sidecars>
}

interface RoundContext {
  readonly cluster: StockCluster
  readonly dir: string
  readonly binDir: string
  readonly socket: string
  readonly profileDir: string | undefined
}

interface RoundResult {
  readonly perSecond: number
  readonly requestsPerVolume: number
  readonly memoryMb: Readonly<Record<string, number>>
}

/** The upstream programs and their flags. Only csi-provisioner is required; the others run if they are present. */
const UPSTREAM_FLAGS: Readonly<Record<string, readonly string[]>> = {
  'csi-provisioner': [`--worker-threads=${WORKERS}`],
  'csi-resizer': [`--workers=${WORKERS}`],
  'csi-attacher': [`--worker-threads=${WORKERS}`],
}
const COMMON_FLAGS = ['--leader-election', '--leader-election-namespace=kube-system', '--timeout=60s']

const SIDES: readonly Side[] = [
  {
    user: 'stowage',
    async start({ cluster, dir, socket, profileDir }) {
      const program = join(process.argv[1]!, '..', 'stowage.js')
      const flags = [`--kubeconfig=${cluster.kubeconfigOf('stowage')}`, `--csi-address=${socket}`, ...COMMON_FLAGS]
      const command = {
        command: process.execPath,
        args: [...profileFlags(profileDir, 'sidecar'), program, 'sidecar', ...flags],
        logPath: join(dir, 'stowage.log'),
      }
      return {
        'stowage sidecar': await startChildProgram({
          ...command,
          args: [...command.args, `--worker-threads=${WORKERS}`],
        }),
      }
    },
  },
  {
    user: 'upstream',
    async start({ cluster, dir, binDir, socket }) {
      const programs: Record<string, ChildProgram> = {}
      const presentNames = await readdir(binDir)
      for (const [name, flags] of Object.entries(UPSTREAM_FLAGS)) {
        if (!presentNames.includes(name)) continue
        programs[name] = await startChildProgram({
          command: join(binDir, name),
          args: [
            `--kubeconfig=${cluster.kubeconfigOf('upstream')}`,
            `--csi-address=${socket}`,
            ...COMMON_FLAGS,
            '--kube-api-qps=100000',
            '--kube-api-burst=100000',
            ...flags,
          ],
          logPath: join(dir, `${name}.log`),
        })
      }
      return programs
    },
  },
]

async function measureSidecars(options: PartOptions): Promise<Figure[]> {
  const { dir, isLong, progress, note, reportMissing } = options
  const binDir = process.env.STOWAGE_UPSTREAM
  const missing = await missingPrograms(binDir)
  if (!binDir || missing.length > 0) {
    reportMissing('provisioning', `set STOWAGE_UPSTREAM to a directory with ${missing.join(', ')}`)
    return []
  }
  const cluster = await startStockCluster({ dir, binDir, users: SIDES.map(({ user }) => user) })
  try {
    progress(`creating ${formatCount(BOUND_CLAIMS)} bound claims and ${formatCount(PODS)} pods`)
    await sendAll(cluster.admin, setupRequests())
    for (const requests of boundClaimRequests(BOUND_CLAIMS)) await sendAll(cluster.admin, requests)
    await sendAll(cluster.admin, podRequests(PODS))
    const limit = await measureLimit(cluster)
    progress(`limit: ${limit.toFixed(0)} volumes with one event each per second`)
    const results = new Map<string, RoundResult[]>()
    for (let round = 0; round < (isLong ? ROUNDS_LONG : ROUNDS); round++) {
      // The order changes, because the cluster grows.
      for (const side of round % 2 === 0 ? SIDES : [...SIDES].reverse()) {
        const result = await measureRound(side, `${side.user}-${round}`, { ...options, cluster, binDir })
        results.set(side.user, [...(results.get(side.user) ?? []), result])
      }
    }
    return figuresOf(results, limit, note)
  } finally {
    await cluster.stop()
  }
}

const PROGRAMS = ['kube-apiserver', 'hostpathplugin', 'csi-provisioner']

async function missingPrograms(binDir: string | undefined): Promise<string[]> {
  const names = binDir ? await readdir(binDir).catch(() => []) : []
  return PROGRAMS.filter((name) => !names.includes(name))
}

/** Returns how many volumes with one event each a load generator can create per second. */
async function measureLimit({ admin }: StockCluster): Promise<number> {
  const load = startRole<RequestsJob, LoadResult>('load')
  const requests: RequestText[] = [
    { method: 'POST', path: '/api/v1/persistentvolumes', body: JSON.stringify(buildVolume(`pv-${NUMBER}`, 'orders')) },
    {
      method: 'POST',
      path: '/api/v1/namespaces/default/events',
      body: JSON.stringify(buildEvent(`event-${NUMBER}`, 'orders')),
    },
  ]
  try {
    const secondsPerRequest: number[] = []
    for (const request of requests) {
      const { count, seconds } = await load.run({
        do: 'requests',
        endpoint: admin,
        clients: CLIENTS,
        request,
        warmUpMs: LIMIT_MEASURE_MS / 5,
        measureMs: LIMIT_MEASURE_MS,
      })
      secondsPerRequest.push(seconds / count)
    }
    return 1 / secondsPerRequest.reduce((sum, seconds) => sum + seconds, 0)
  } finally {
    load.stop()
  }
}

async function measureRound(
  { user, start }: Side,
  round: string,
  context: PartOptions & { readonly cluster: StockCluster; readonly binDir: string },
): Promise<RoundResult> {
  const { cluster, binDir, progress, note, profileDir } = context
  const { admin, programs } = cluster
  const dir = join(context.dir, round)
  await mkdir(join(dir, 'driver'), { recursive: true })
  const socket = join(dir, 'csi.sock')
  const driver = await startChildProgram({
    command: join(binDir, 'hostpathplugin'),
    args: [`--endpoint=unix://${socket}`, `--nodeid=${DRIVER_NODE}`, `--statedir=${join(dir, 'driver')}`],
    logPath: join(dir, 'driver.log'),
  })
  const sidecars = await start({ cluster, dir, binDir, socket, profileDir })
  const volumes = () => countObjects(admin, '/api/v1/persistentvolumes')
  const events = () => countObjects(admin, '/api/v1/events')
  const provision = async (namespace: string, claims: number): Promise<{ startMs: number; endMs: number }> => {
    const expectedCount = (await volumes()) + claims
    await sendAll(admin, [
      { method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name: namespace } }) },
    ])
    driver.signal('SIGSTOP')
    await sendAll(admin, newClaimRequests(namespace, claims))
    await sleep(500) // until the claims are in the caches
    const startMs = Date.now()
    driver.signal('SIGCONT')
    while ((await volumes()) < expectedCount) {
      if (Date.now() - startMs > ROUND_MS_MAX) throw new Error(`${user} did not provision ${claims} volumes in time`)
      await sleep(POLL_INTERVAL_MS)
    }
    const endMs = Date.now()
    for (let [count, sinceMs] = [-1, Date.now()]; Date.now() - sinceMs < QUIET_MS; await sleep(POLL_INTERVAL_MS)) {
      const eventCount = await events()
      if (eventCount === count) continue
      count = eventCount
      sinceMs = Date.now()
    }
    return { startMs, endMs }
  }
  try {
    await provision(`${round}-warm-up`, WARM_UP_CLAIMS)
    const cpuOf = () => ({
      driver: driver.cpuMs(),
      apiserver: programs.apiserver.cpuMs(),
      etcd: programs.etcd.cpuMs(),
      ...Object.fromEntries(Object.entries(sidecars).map(([name, program]) => [name, program.cpuMs()])),
    })
    const cpuBefore: Record<string, number> = cpuOf()
    const { startMs } = await provision(round, CLAIMS)
    const cpuAfter: Record<string, number> = cpuOf()
    const memoryMb = Object.fromEntries(Object.entries(sidecars).map(([name, program]) => [name, program.residentMb()]))
    const requests = (await readAuditLog(cluster.auditLog)).filter((request) => request.user === user)
    const measuredRequests = requests.filter(({ atMs }) => atMs >= startMs - REQUESTS_BEFORE_MS)
    const result = resultOf(measuredRequests, startMs, memoryMb)
    const cpuText = Object.entries(cpuAfter)
      .map(([name, ms]) => `${name} ${((ms - (cpuBefore[name] ?? 0)) / CLAIMS).toFixed(2)} ms`)
      .join(', ')
    const countText = [...countRequests(measuredRequests.filter(({ atMs }) => atMs >= startMs))]
      .map(([request, count]) => `${request} ${formatCount(count)}`)
      .join(', ')
    progress(`${round}: ${result.perSecond.toFixed(0)} volumes/s; processor time per volume: ${cpuText}`)
    note(`${round}: requests for ${formatCount(CLAIMS)} volumes: ${countText}`)
    return result
  } finally {
    for (const program of Object.values(sidecars)) await program.stop()
    await driver.stop()
    await sendAll(admin, [
      ...[round, `${round}-warm-up`].map(
        (namespace): RequestText => ({
          method: 'DELETE',
          path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims`,
        }),
      ),
    ]).catch(() => {})
  }
}

function resultOf(
  requests: readonly AuditedRequest[],
  startMs: number,
  memoryMb: Readonly<Record<string, number>>,
): RoundResult {
  const created = requests.filter(({ request, code, atMs }) => {
    return request === 'create persistentvolumes' && code === 201 && atMs >= startMs
  })
  const lastMs = Math.max(...created.map(({ atMs }) => atMs))
  return {
    perSecond: (created.length * 1_000) / (lastMs - startMs),
    requestsPerVolume: requests.filter(isPerVolume).length / created.length,
    memoryMb,
  }
}

function figuresOf(
  results: ReadonlyMap<string, readonly RoundResult[]>,
  limit: number,
  note: PartOptions['note'],
): Figure[] {
  const [stowage, upstream] = SIDES.map(({ user }) => results.get(user) ?? [])
  const median = (rounds: readonly RoundResult[] | undefined, measureOf: (result: RoundResult) => number) =>
    medianOf((rounds ?? []).map(measureOf))
  const rate = (rounds: readonly RoundResult[] | undefined) => median(rounds, ({ perSecond }) => perSecond)
  const requests = (rounds: readonly RoundResult[] | undefined) => median(rounds, (result) => result.requestsPerVolume)
  const smallestTwo = ({ memoryMb }: RoundResult): number =>
    Object.values(memoryMb)
      .sort((a, b) => a - b)
      .slice(0, 2)
      .reduce((sum, mb) => sum + mb, 0)
  for (const [user, rounds] of results)
    note(
      `${user}: ${rounds.map(({ perSecond }) => perSecond.toFixed(0)).join(', ')} volumes/s in ${rounds.length} rounds`,
    )
  const of = "upstream's sidecars"
  return [
    { name: 'volumes provisioned', unit: '/s', value: rate(stowage), limit: { value: rate(upstream), of } },
    {
      name: 'volumes provisioned',
      unit: '/s',
      value: rate(stowage),
      limit: { value: limit, of: 'a load generator that creates the same volumes and events' },
    },
    {
      name: "volumes provisioned by upstream's sidecars",
      unit: '/s',
      value: rate(upstream),
      limit: { value: limit, of: 'a load generator that creates the same volumes and events' },
    },
    {
      name: 'requests per volume',
      unit: 'requests',
      value: requests(stowage),
      limit: { value: requests(upstream), of },
    },
    {
      name: 'resident memory',
      unit: 'MB',
      value: median(stowage, smallestTwo),
      limit: { value: median(upstream, smallestTwo), of: 'the smallest two of upstream’s three processes' },
    },
  ]
}
