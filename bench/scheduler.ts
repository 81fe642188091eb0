// Pods that get nodes where their volumes fit, measured from outside over HTTPS: `stowage up` on a durable store, local
// storage on 100 to 5,000 nodes, ten classes of it, and a capacity object for each node and class.
//   decisions   from a pod's create to the node chosen for its claim; nobody makes volumes
//   pods        from a pod's create to its node, with a volume made for it by `stowage provisioner`, which also keeps
//               the capacity objects true
//   tracking    claims that wait for no pod, made with and without capacity being tracked
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { nodesToFind } from '../src/scheduler/find-node.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, type RequestText } from './lib/load-role.ts'
import { CAPACITY_NAMESPACE, className, fillCluster, IMMEDIATE, PLACE } from './lib/local-cluster.ts'
import type { PoolsJob } from './lib/pools-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { startProvisioner, startServer } from './lib/server-process.ts'
import type { SuiteOptions } from './lib/suite.ts'

const CLUSTERS = [100, 1_000, 5_000]
const CLASSES = 10
const POOL_BYTES = 1024 ** 5
const DRIVER = 'pools.csi.stowage.dev'
const CLIENTS = 64
const WARM_UP_PODS = 500
const DECISIONS = 3_000
const PODS = 1_000
const TRACKED_CLAIMS = 1_000
const TRACKED_ROUNDS = 3
/** By number of nodes. */
const DECISIONS_PER_SECOND_MIN: Readonly<Record<number, number>> = { 1000: 500, 5000: 200 }
const PODS_PER_SECOND_MIN: Readonly<Record<number, number>> = { 1000: 200 }
/** What tracking may cost: the rate with it against that without. */
const TRACKING_RATIO_MIN = 0.95

const PODS_PATH = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`
const CLAIMS_PATH = (namespace: string) => `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
const SELECTED = '"volume.kubernetes.io/selected-node"'

type Scratch = SuiteOptions & { readonly dir: string }

export async function measureScheduler(options: SuiteOptions): Promise<Figure[]> {
  const dir = await mkdtemp(join(options.dir ?? tmpdir(), 'stowage-bench-'))
  const parts = { decisions: measureDecisions, pods: measurePods, tracking: measureTracking }
  const figures: Figure[] = []
  try {
    for (const [part, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(part)) continue
      figures.push(...(await measure({ ...options, dir: join(dir, part) })))
    }
    return figures
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function measureDecisions(options: Scratch): Promise<Figure[]> {
  const figures: Figure[] = []
  const msPerPod = new Map<number, number>()
  for (const nodes of CLUSTERS) {
    const bench = await openBench(options, nodes)
    try {
      for (const count of [WARM_UP_PODS, DECISIONS]) {
        bench.progress(`${nodes} nodes: ${count === DECISIONS ? 'decisions' : 'warming up'}`)
        const burst = await bench.nextBurst(count)
        const claims = CLAIMS_PATH(burst.namespace)
        const result = await bench.run(burst, { create: podOf(burst), watch: claims, until: SELECTED })
        if (count !== DECISIONS) continue
        msPerPod.set(nodes, (result.seconds * 1_000) / count)
        const target = DECISIONS_PER_SECOND_MIN[nodes]
        figures.push({
          name: `decisions, ${bench.sizeText}`,
          unit: '/s',
          value: count / result.seconds,
          limit: await bench.unplaced(count),
          ...(target ? { target: { valueMin: target } } : {}),
        })
      }
    } finally {
      await bench.close()
    }
  }
  return [...figures, growthOf(msPerPod)]
}

/** Ten times the nodes may cost no more than what ten times the candidates would. */
function growthOf(msPerPod: ReadonlyMap<number, number>): Figure {
  const [few, many] = [CLUSTERS[0]!, CLUSTERS.at(-1)!]
  const growth = nodesToFind(many) / nodesToFind(few)
  return {
    name: `time per decision at ${many.toLocaleString('en')} nodes`,
    unit: 'ms',
    value: msPerPod.get(many)!,
    limit: { value: msPerPod.get(few)! * growth, of: `that at ${few} nodes × ${growth}, as candidate nodes grow` },
    target: { ratioMin: 1 },
  }
}

async function measurePods(options: Scratch): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const nodes of CLUSTERS) {
    const bench = await openBench(options, nodes, { provisioner: TRACKING_FLAGS })
    try {
      for (const count of [WARM_UP_PODS, PODS]) {
        bench.progress(`${nodes} nodes: ${count === PODS ? 'pods with volumes' : 'warming up'}`)
        const burst = await bench.nextBurst(count)
        const pods = PODS_PATH(burst.namespace)
        const wroteBefore = await bench.capacityWrites()
        const result = await bench.run(burst, { create: podOf(burst), watch: pods, until: '"nodeName":"' })
        if (count !== PODS) continue
        const wrote = (await bench.capacityWrites()) - wroteBefore
        const target = PODS_PER_SECOND_MIN[nodes]
        figures.push(
          {
            name: `pods with a volume each, ${bench.sizeText}`,
            unit: '/s',
            value: count / result.seconds,
            limit: await bench.unplaced(count),
            ...(target ? { target: { valueMin: target } } : {}),
          },
          { name: 'the same, p50', unit: 'ms', value: result.p50Ms },
          { name: 'the same, p99', unit: 'ms', value: result.p99Ms },
          // Each volume concerns one object, since each burst is of one class.
          { name: 'capacity objects written meanwhile', unit: 'writes', value: wrote, target: { valueMax: count } },
        )
      }
    } finally {
      await bench.close()
    }
  }
  return figures
}

/** Rounds with and without take turns, so that whatever else the machine does is shared. */
async function measureTracking(options: Scratch): Promise<Figure[]> {
  const rates: Record<'on' | 'off', number[]> = { on: [], off: [] }
  for (let round = 0; round < TRACKED_ROUNDS; round++) {
    for (const tracking of ['off', 'on'] as const) {
      const bench = await openBench(options, CLUSTERS[0]!, { provisioner: tracking === 'on' ? TRACKING_FLAGS : [] })
      try {
        for (const count of [WARM_UP_PODS, TRACKED_CLAIMS]) {
          bench.progress(`tracking ${tracking}, round ${round + 1}${count === TRACKED_CLAIMS ? '' : ', warming up'}`)
          const burst = await bench.nextBurst(count, { withClaims: false })
          const path = CLAIMS_PATH(burst.namespace)
          const create: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(IMMEDIATE)) }
          const result = await bench.run(burst, { create, watch: path, until: '"phase":"Bound"' })
          if (count === TRACKED_CLAIMS) rates[tracking].push(count / result.seconds)
        }
      } finally {
        await bench.close()
      }
    }
  }
  return [
    {
      name: 'SYS-16 claims provisioned with capacity tracked',
      unit: '/s',
      value: medianOf(rates.on),
      limit: { value: medianOf(rates.off), of: 'the same without tracking' },
      target: { ratioMin: TRACKING_RATIO_MIN },
    },
  ]
}

const TRACKING_FLAGS = [
  ...['--enable-capacity', 'central', '--capacity-ownerref-level', '-1'],
  ...['--kube-api-capacity-qps', '-1', '--capacity-threads', '10'],
]

interface Burst {
  readonly namespace: string
  readonly className: string
  readonly count: number
  readonly after: number
}

interface Bench {
  /** `1,000 nodes × 10 classes` */
  readonly sizeText: string
  progress(text: string): void
  /** A namespace of its own, with a claim for every pod to come. */
  nextBurst(count: number, options?: { withClaims: boolean }): Promise<Burst>
  run(burst: Burst, way: { create: RequestText; watch: string; until: string }): Promise<BurstResult>
  /** The unavoidable part: as many durable creates of the same pods, that nobody looks for a node for. */
  unplaced(count: number): Promise<NonNullable<Figure['limit']>>
  /** How often capacity objects have been written since the server started. */
  capacityWrites(): Promise<number>
  close(): Promise<void>
}

async function openBench(
  { dir, profileDir, progress }: Scratch,
  nodes: number,
  { provisioner: flags }: { readonly provisioner?: readonly string[] } = {},
): Promise<Bench> {
  await mkdir(dir, { recursive: true })
  const own = await mkdtemp(join(dir, `${nodes}-`))
  const dataDir = join(own, 'data')
  progress(`${nodes} nodes: filling the store`)
  await fillCluster(dataDir, { nodes, classes: CLASSES, driver: DRIVER, poolBytes: POOL_BYTES })
  const server = await startServer({ dataDir, profileDir, command: 'up' })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const driver: Role<PoolsJob, void> | undefined = flags && startRole('pools')
  const socket = join(own, 'csi.sock')
  await driver?.run({ socket, name: DRIVER, place: PLACE, poolBytes: POOL_BYTES })
  const provisioner =
    flags &&
    (await startProvisioner({
      kubeconfig: join(dataDir, 'admin.kubeconfig'),
      socket,
      profileDir,
      flags: ['--strict-topology', 'true', '--immediate-topology', 'false', ...flags],
      env: { NAMESPACE: CAPACITY_NAMESPACE },
    }))
  let used = 0
  let names = 0

  async function post(path: string, body: object): Promise<void> {
    const connection = await openConnection(endpoint, () => {})
    const request = numberedRequest({ method: 'POST', path, body: JSON.stringify(body) })(0)
    const { status } = await new Promise<{ status: number }>((resolve) => connection.ask(request, resolve))
    connection.close()
    if (status >= 300) throw new Error(`POST ${path}: ${status}`)
  }

  const bench: Bench = {
    sizeText: `${nodes.toLocaleString('en')} nodes × ${CLASSES} classes`,
    progress,
    async nextBurst(count, { withClaims } = { withClaims: true }) {
      const namespace = `burst-${++names}`
      await post('/api/v1/namespaces', { metadata: { name: namespace } })
      used += count
      const burst = { namespace, className: className(names % CLASSES), count, after: used - count }
      if (!withClaims) return burst
      const path = CLAIMS_PATH(namespace)
      const create: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(burst.className)) }
      await bench.run(burst, { create, watch: path, until: '"phase":"Pending"' })
      return burst
    },
    run: ({ count, after }, { create, watch, until }) =>
      bursts.run({
        endpoint,
        clients: CLIENTS,
        count,
        after,
        create,
        watch: { method: 'GET', path: `${watch}?watch=1` },
        until,
      }),
    async unplaced(count) {
      const burst = await bench.nextBurst(count, { withClaims: false })
      const create = podOf(burst, { schedulerName: 'nobody' })
      const { seconds } = await bench.run(burst, {
        create,
        watch: PODS_PATH(burst.namespace),
        until: '"phase":"Pending"',
      })
      return { value: count / seconds, of: 'creates of pods that nobody places' }
    },
    async capacityWrites() {
      let sum = 0
      for (const line of (await readText(endpoint, '/metrics')).split('\n')) {
        const isWrite = /^apiserver_request_total\{.*verb="(PATCH|POST|PUT|CREATE|UPDATE)"/i.test(line)
        if (isWrite && line.includes('resource="csistoragecapacities"')) sum += Number(line.split(' ').at(-1))
      }
      return sum
    },
    async close() {
      bursts.stop()
      await provisioner?.stop()
      driver?.stop()
      await server.stop()
      await rm(own, { recursive: true, force: true })
    },
  }
  return bench
}

function readText({ port, ca, cert, key }: Endpoint, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, ca, cert, key }, async (answer) => {
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve(text)
    }).on('error', reject)
  })
}

const claimOf = (storageClassName: string) => ({
  metadata: { name: `claim-${NUMBER}` },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
})

const podOf = ({ namespace }: Burst, parts: object = {}): RequestText => ({
  method: 'POST',
  path: PODS_PATH(namespace),
  body: JSON.stringify({
    metadata: { name: `pod-${NUMBER}` },
    spec: {
      containers: [{ name: 'main', image: 'scratch', resources: { requests: { cpu: '10m', memory: '16Mi' } } }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${NUMBER}` } }],
      ...parts,
    },
  }),
})
