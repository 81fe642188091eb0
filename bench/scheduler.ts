// Measures the scheduling of pods with volumes over HTTPS: `stowage up` on a durable store, local storage on 100 to
// 5,000 nodes with ten classes, and a capacity object for each node and class.
//   decisions   from a pod's create to the selected node of its claim; no volumes are provisioned
//   pods        from a pod's create to its node, with a volume from `stowage provisioner`, which also maintains the
//               capacity objects
//   tracking    claims with immediate binding, provisioned with and without capacity tracking
//   simulation  `stowage simulate` on a generated snapshot, without a server (simulate.ts)
import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { type Comparison, type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { toUnitGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type RequestText } from './lib/load-role.ts'
import { CAPACITY_NAMESPACE, className, fillCluster, IMMEDIATE_CLASS, NODE_TOPOLOGY_KEY } from './lib/local-cluster.ts'
import type { PoolsJob } from './lib/pools-role.ts'
import { post } from './lib/post.ts'
import { type Role, startRole } from './lib/role.ts'
import { startProvisioner, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'
import { measureSimulation } from './simulate.ts'

const CLUSTERS = [100, 1_000, 5_000]
const CLASSES = 10
const POOL_BYTES = 1024 ** 5
const DRIVER = 'pools.csi.stowage.dev'
const CLIENTS = 64
const SHORT = { warmUpPods: 500, decisions: 1_200, pods: 700, trackedPairs: 12, trackedClaims: 150 }
const LONG = { warmUpPods: 500, decisions: 3_000, pods: 1_000, trackedPairs: 30, trackedClaims: 300 }
/** Targets by number of nodes. */
const DECISIONS_PER_SECOND_MIN: Readonly<Record<number, number>> = { 1000: 500, 5000: 200 }
const PODS_PER_SECOND_MIN: Readonly<Record<number, number>> = { 1000: 200 }
/** A decision may grow with the scored nodes, which are 5 times as many in a cluster 50 times as large; plus noise. */
const DECISION_EXPONENT_MAX = 0.5
const PUBLISHED = {
  decisions: { value: 100, of: 'pods without volumes on 5,000 nodes, a rate-limited test, kubernetes#74041' },
  pods: { value: 20, of: 'pods with claims, kubernetes#138426' },
}
/** The rate with capacity tracking compared with the rate without. */
const TRACKING_RATIO_MIN = 0.95

const podsPath = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`
const claimsPath = (namespace: string) => `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
const HAS_SELECTED_NODE = '"volume.kubernetes.io/selected-node"'

export const schedulerSuite: Suite = {
  parts: {
    decisions: measureDecisions,
    pods: measurePods,
    tracking: measureTracking,
    simulation: measureSimulation,
  },
}

async function measureDecisions(options: PartOptions): Promise<Figure[]> {
  const { warmUpPods, decisions } = options.isLong ? LONG : SHORT
  const figures: Figure[] = []
  const points: GrowthPoint[] = []
  for (const nodes of CLUSTERS) {
    const bench = await openBench(options, nodes)
    try {
      for (const pods of [warmUpPods, decisions]) {
        bench.progress(`${formatCount(nodes)} nodes: ${pods === decisions ? 'decisions' : 'warming up'}`)
        const burst = await bench.nextBurst(pods)
        const claims = claimsPath(burst.namespace)
        const result = await bench.run(burst, { create: podOf(burst), watch: claims, until: HAS_SELECTED_NODE })
        if (pods !== decisions) continue
        points.push({ size: nodes, ms: (result.seconds * 1_000) / pods })
        const target = DECISIONS_PER_SECOND_MIN[nodes]
        figures.push({
          name: `decisions, ${bench.sizeText}`,
          unit: '/s',
          value: pods / result.seconds,
          limit: await bench.measureCreatesAlone(pods),
          ...(target ? { target: { valueMin: target } } : {}),
          ...(nodes === CLUSTERS.at(-1) ? { peer: PUBLISHED.decisions } : {}),
        })
      }
    } finally {
      await bench.close()
    }
  }
  return [...figures, toUnitGrowthFigure('time per decision', { of: 'nodes', points }, DECISION_EXPONENT_MAX)]
}

async function measurePods(options: PartOptions): Promise<Figure[]> {
  const { warmUpPods, pods: measuredPods } = options.isLong ? LONG : SHORT
  const figures: Figure[] = []
  const points: GrowthPoint[] = []
  for (const nodes of CLUSTERS) {
    const bench = await openBench(options, nodes, { provisioner: TRACKING_FLAGS })
    try {
      for (const pods of [warmUpPods, measuredPods]) {
        bench.progress(`${formatCount(nodes)} nodes: ${pods === measuredPods ? 'pods with volumes' : 'warming up'}`)
        const burst = await bench.nextBurst(pods)
        const watch = podsPath(burst.namespace)
        const writesBefore = await bench.countCapacityWrites()
        const result = await bench.run(burst, { create: podOf(burst), watch, until: '"nodeName":"' })
        if (pods !== measuredPods) continue
        const capacityWrites = (await bench.countCapacityWrites()) - writesBefore
        const target = PODS_PER_SECOND_MIN[nodes]
        const name = `pods with a volume each, ${bench.sizeText}`
        points.push({ size: nodes, ms: (result.seconds * 1_000) / pods })
        figures.push(
          {
            name,
            unit: '/s',
            value: pods / result.seconds,
            limit: await bench.measureCreatesAlone(pods),
            ...(target ? { target: { valueMin: target }, peer: PUBLISHED.pods } : {}),
          },
          { name: `${name}, p50`, unit: 'ms', value: result.p50Ms },
          { name: `${name}, p99`, unit: 'ms', value: result.p99Ms },
          // Each volume changes one object, because a burst uses one class.
          {
            name: `capacity writes for ${pods} pods, ${bench.sizeText}`,
            unit: 'writes',
            value: capacityWrites,
            target: { valueMax: pods },
          },
        )
      }
    } finally {
      await bench.close()
    }
  }
  return [...figures, toUnitGrowthFigure('time per pod with a volume', { of: 'nodes', points }, DECISION_EXPONENT_MAX)]
}

/**
 * Compares two clusters, one of them with capacity tracking. Small bursts alternate, so that both run under the same load with
 * the same number of claims. A short stall changes neither median.
 */
async function measureTracking(options: PartOptions): Promise<Figure[]> {
  const { warmUpPods, trackedPairs, trackedClaims } = options.isLong ? LONG : SHORT
  const rates: Record<Tracking, number[]> = { on: [], off: [] }
  const plainBench = await openBench(options, CLUSTERS[0]!, { provisioner: [] })
  try {
    const trackingBench = await openBench(options, CLUSTERS[0]!, { provisioner: TRACKING_FLAGS })
    try {
      const benches = { on: trackingBench, off: plainBench }
      for (const tracking of TURNS) {
        options.progress(`capacity tracking ${tracking}: warming up`)
        await measureClaimRate(benches[tracking], warmUpPods)
      }
      for (let pair = 0; pair < trackedPairs; pair++) {
        options.progress(`with and without tracking, pair ${pair + 1} of ${trackedPairs}`)
        for (const tracking of pair % 2 === 0 ? TURNS : TURNS.toReversed()) {
          rates[tracking].push(await measureClaimRate(benches[tracking], trackedClaims))
          await waitUntilQuiet(trackingBench)
        }
      }
    } finally {
      await trackingBench.close()
    }
  } finally {
    await plainBench.close()
  }
  return [
    {
      name: 'SYS-16 claims provisioned with capacity tracking',
      unit: '/s',
      value: medianOf(rates.on),
      limit: { value: medianOf(rates.off), of: 'the same without tracking' },
      target: { ratioMin: TRACKING_RATIO_MIN },
    },
  ]
}

type Tracking = 'on' | 'off'
const TURNS: readonly Tracking[] = ['off', 'on']

/** Returns the number of claims provisioned per second. */
async function measureClaimRate(bench: Bench, claims: number): Promise<number> {
  const burst = await bench.nextBurst(claims, { withClaims: false })
  const path = claimsPath(burst.namespace)
  const create: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(IMMEDIATE_CLASS)) }
  const { seconds } = await bench.run(burst, { create, watch: path, until: '"phase":"Bound"' })
  return claims / seconds
}

/** Waits until tracking has written everything: its writes must not fall into the other cluster's turn. */
async function waitUntilQuiet(bench: Bench): Promise<void> {
  for (let previousWrites = -1, currentWrites = 0; previousWrites !== currentWrites; ) {
    previousWrites = currentWrites
    await systemClock().sleep(QUIET_MS)
    currentWrites = await bench.countCapacityWrites()
  }
}

/** Without a write for this long, capacity objects are up to date. */
const QUIET_MS = 100

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
  /** Creates a namespace, and a claim for every pod of the burst unless `withClaims` is false. */
  nextBurst(count: number, options?: { withClaims: boolean }): Promise<Burst>
  run(burst: Burst, request: { create: RequestText; watch: string; until: string }): Promise<BurstResult>
  /** Measures the limit: as many durable creates of the same pods, for a scheduler that does not exist. */
  measureCreatesAlone(count: number): Promise<Comparison>
  /** Returns the number of writes of capacity objects since the server started. */
  countCapacityWrites(): Promise<number>
  close(): Promise<void>
}

async function openBench(
  { dir, profileDir, progress }: PartOptions,
  nodes: number,
  { provisioner: flags }: { readonly provisioner?: readonly string[] } = {},
): Promise<Bench> {
  const benchDir = await mkdtemp(join(dir, `${nodes}-`))
  const dataDir = join(benchDir, 'data')
  progress(`${formatCount(nodes)} nodes: filling the store`)
  await fillCluster(dataDir, { nodes, classes: CLASSES, driver: DRIVER, poolBytes: POOL_BYTES })
  const server = await startServer({ dataDir, profileDir, command: 'up' })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const driver: Role<PoolsJob, void> | undefined = flags && startRole('pools')
  const socket = join(benchDir, 'csi.sock')
  await driver?.run({ socket, name: DRIVER, topologyKey: NODE_TOPOLOGY_KEY, poolBytes: POOL_BYTES })
  const provisioner =
    flags &&
    (await startProvisioner({
      kubeconfig: join(dataDir, 'admin.kubeconfig'),
      socket,
      profileDir,
      flags: ['--strict-topology', 'true', '--immediate-topology', 'false', ...flags],
      env: { NAMESPACE: CAPACITY_NAMESPACE },
    }))
  let usedCount = 0
  let nameCount = 0

  const bench: Bench = {
    sizeText: `${formatCount(nodes)} nodes × ${CLASSES} classes`,
    progress,
    async nextBurst(pods, { withClaims } = { withClaims: true }) {
      const namespace = `burst-${++nameCount}`
      await post(endpoint, '/api/v1/namespaces', { metadata: { name: namespace } })
      usedCount += pods
      const burst = { namespace, className: className(nameCount % CLASSES), count: pods, after: usedCount - pods }
      if (!withClaims) return burst
      const path = claimsPath(namespace)
      const create: RequestText = { method: 'POST', path, body: JSON.stringify(claimOf(burst.className)) }
      await bench.run(burst, { create, watch: path, until: '"phase":"Pending"' })
      return burst
    },
    run: (burst, { create, watch, until }) =>
      bursts.run({
        endpoint,
        clients: CLIENTS,
        count: burst.count,
        after: burst.after,
        request: create,
        watch: { method: 'GET', path: `${watch}?watch=1` },
        until,
      }),
    async measureCreatesAlone(pods) {
      const burst = await bench.nextBurst(pods, { withClaims: false })
      const create = podOf(burst, { schedulerName: 'none' })
      const { seconds } = await bench.run(burst, {
        create,
        watch: podsPath(burst.namespace),
        until: '"phase":"Pending"',
      })
      return { value: pods / seconds, of: 'the pod creates alone' }
    },
    async countCapacityWrites() {
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
      await rm(benchDir, { recursive: true, force: true })
    },
  }
  return bench
}

function readText({ port, ca, cert, key }: Endpoint, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, ca, cert, key }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
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
  path: podsPath(namespace),
  body: JSON.stringify({
    metadata: { name: `pod-${NUMBER}` },
    spec: {
      containers: [{ name: 'main', image: 'scratch', resources: { requests: { cpu: '10m', memory: '16Mi' } } }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${NUMBER}` } }],
      ...parts,
    },
  }),
})
