// Measures the processor time per operation of `stowage up`, and of a separate provisioner. With --against or --beside, the
// programs of this build and of the other one receive the same bursts in turns: a busy machine then slows down both, and the
// ratio of neighbouring rounds remains precise enough to assess a change.
//   binding        claims bound to existing volumes
//   provisioning   claims provisioned by a driver in the server process
//   separate       the same by `stowage provisioner`
//   expansion      claims that request more storage
//   modification   claims that request another attributes class
//   scheduling     pods, each with a claim that waits for its first consumer
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstResult, OpenBurstJob } from './lib/burst-role.ts'
import { buildClaim } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type RequestText } from './lib/load-role.ts'
import { compareRounds, ratioText } from './lib/paired-ratio.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { type Program, startFakeDriver, startProvisioner, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'

const CLIENTS = 64
const OPERATIONS = 200
const WARM_UP_ROUNDS = 8
const ROUNDS = { short: 12, long: 40 }
/** Pause before and after a burst: the server sends the initial events of its watch, and writes recorded events and the journal after it. */
const SETTLE_MS = 400
const NODES = Array.from({ length: 10 }, (_, index) => `node-${index + 1}`)

const DRIVER = 'fake.csi.stowage.dev'
const NAMESPACE = 'default'
const CLAIMS = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`
const VOLUMES = '/api/v1/persistentvolumes'
const IS_BOUND = '"phase":"Bound"'

export const processorSuite: Suite = {
  parts: {
    binding: (options) => measure(options, binding),
    provisioning: (options) => measure(options, provisioning),
    separate: (options) => measure(options, { ...provisioning, isSeparate: true }),
    expansion: (options) => measure(options, expansion),
    modification: (options) => measure(options, modification),
    scheduling: (options) => measure(options, scheduling),
  },
  isOptional: true,
  comparesInOneRun: true,
}

interface Workload {
  /** For example `per bound claim`. */
  readonly per: string
  readonly isSeparate?: true
  /** Prepares the server once. */
  open?(bench: Bench): Promise<void>
  /** Creates what the operations of a round need; not measured. */
  prepare?(bench: Bench, round: Round): Promise<void>
  /** The operations of a round. */
  operations(round: Round): Operations
}

interface Round {
  readonly number: number
  /** The last number that an object of an earlier round has. */
  readonly after: number
}

interface Operations {
  readonly request: RequestText
  /** Set if each round edits the same objects instead of creating new ones. */
  readonly isEdit?: true
  readonly watch: string
  /** Text in the event of a finished operation. */
  readonly until: string
}

const binding: Workload = {
  per: 'per bound claim',
  async prepare(bench, { number, after }) {
    const body = {
      metadata: { name: `volume-${NUMBER}` },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: `class-${number}`,
        hostPath: { path: `/volumes/${NUMBER}` },
      },
    }
    const request = { method: 'POST', path: VOLUMES, body: JSON.stringify(body) } as const
    await bench.burst({ request, watch: VOLUMES, until: '"phase":"Available"' }, after)
  },
  operations: ({ number }) => createClaims({ storageClassName: `class-${number}` }),
}

const provisioning: Workload = {
  per: 'per provisioned claim',
  open: (bench) => bench.post('/apis/storage.k8s.io/v1/storageclasses', storageClass({})),
  operations: () => createClaims({ storageClassName: CLASS }),
}

const expansion: Workload = {
  per: 'per expansion',
  async open(bench) {
    await bench.post('/apis/storage.k8s.io/v1/storageclasses', storageClass({ allowVolumeExpansion: true }))
    await bench.burst(createClaims({ storageClassName: CLASS, volumeMode: 'Block' }), 0)
  },
  operations({ number }) {
    const storage = `${10 * (number + 2)}Gi`
    return editClaims({ resources: { requests: { storage } } }, `"capacity":{"storage":"${storage}"}`)
  },
}

const modification: Workload = {
  per: 'per modification',
  async open(bench) {
    await bench.post('/apis/storage.k8s.io/v1/storageclasses', storageClass({}))
    await bench.post(ATTRIBUTES_CLASSES, attributesClass('class-first', 100))
    await bench.burst(createClaims({ storageClassName: CLASS, volumeAttributesClassName: 'class-first' }), 0)
  },
  prepare: (bench, { number }) => bench.post(ATTRIBUTES_CLASSES, attributesClass(`class-${number}`, 1_000 + number)),
  operations: ({ number }) =>
    editClaims(
      { volumeAttributesClassName: `class-${number}` },
      `"currentVolumeAttributesClassName":"class-${number}"`,
    ),
}

const scheduling: Workload = {
  per: 'per scheduled pod with a volume',
  async open(bench) {
    await bench.post(
      '/apis/storage.k8s.io/v1/storageclasses',
      storageClass({ volumeBindingMode: 'WaitForFirstConsumer' }),
    )
    for (const node of NODES) await bench.postNode(node)
  },
  async prepare(bench, { after }) {
    await bench.burst({ ...createClaims({ storageClassName: CLASS }), until: '"phase":"Pending"' }, after)
  },
  operations() {
    const body = {
      metadata: { name: `pod-${NUMBER}` },
      spec: {
        containers: [{ name: 'main', image: 'scratch', resources: { requests: { cpu: '10m', memory: '16Mi' } } }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${NUMBER}` } }],
      },
    }
    return {
      request: { method: 'POST', path: PODS, body: JSON.stringify(body) },
      watch: PODS,
      until: '"nodeName":"',
    }
  },
}

const CLASS = 'measured'
const storageClass = (fields: object) => ({ metadata: { name: CLASS }, provisioner: DRIVER, ...fields })
const ATTRIBUTES_CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const attributesClass = (name: string, iops: number) => ({
  metadata: { name },
  driverName: DRIVER,
  parameters: { iops: String(iops) },
})

function createClaims(fields: object): Operations {
  const claim = buildClaim(`claim-${NUMBER}`)
  const body = { ...claim, spec: { ...claim.spec, ...fields } }
  return { request: { method: 'POST', path: CLAIMS, body: JSON.stringify(body) }, watch: CLAIMS, until: IS_BOUND }
}

const editClaims = (spec: object, until: string): Operations => ({
  request: { method: 'PATCH', path: `${CLAIMS}/claim-${NUMBER}`, body: JSON.stringify({ spec }) },
  isEdit: true,
  watch: CLAIMS,
  until,
})

async function measure(options: PartOptions, workload: Workload): Promise<Figure[]> {
  const { beside, isLong, progress, note } = options
  const rounds = isLong ? ROUNDS.long : ROUNDS.short
  const benches: Bench[] = []
  try {
    benches.push(await openBench(options, workload, 'after'))
    if (beside) benches.push(await openBench(options, workload, 'before', beside.programs))
    for (const bench of benches) await workload.open?.(bench)
    for (let number = 0; number < WARM_UP_ROUNDS + rounds; number++) {
      const isWarmUp = number < WARM_UP_ROUNDS
      if (number === 0) progress('warming up')
      if (number === WARM_UP_ROUNDS) progress(`${rounds} rounds of ${OPERATIONS} operations`)
      for (const bench of number % 2 === 0 ? benches : benches.toReversed()) await bench.round(number, isWarmUp)
    }
  } finally {
    for (const bench of benches) await bench.close()
  }
  const [after, before] = benches
  return Object.keys(after!.cpuMs).map((process): Figure => {
    const name = `processor time of the ${process} ${workload.per}`
    const value = medianOf(after!.cpuMs[process]!)
    if (!before) return { name, unit: 'ms', value }
    const reference = before.cpuMs[process]!
    const ratio = compareRounds(
      after!.cpuMs[process]!.map((ms, round) => ({ value: ms, reference: reference[round]! })),
    )
    note(`${name}, compared with ${beside!.name}: ratio ${ratio.median.toFixed(2)}, ${ratioText(ratio)}.`)
    return { name, unit: 'ms', value, limit: { value: medianOf(reference), of: `${beside!.name}, in turns` } }
  })
}

interface Bench {
  /** Milliseconds per operation, by process, of each measured round. */
  readonly cpuMs: Readonly<Record<string, number[]>>
  post(path: string, body: object): Promise<void>
  /** Creates a node with the driver of this benchmark. */
  postNode(name: string): Promise<void>
  /** Opens connections and a watch; the returned function sends the requests. */
  openBurst(operations: Operations, after: number): Promise<() => Promise<BurstResult>>
  burst(operations: Operations, after: number): Promise<BurstResult>
  round(number: number, isWarmUp: boolean): Promise<void>
  close(): Promise<void>
}

async function openBench(
  { dir: parent, profileDir }: PartOptions,
  workload: Workload,
  name: string,
  programs?: string,
): Promise<Bench> {
  const dir = join(parent, name)
  await mkdir(dir)
  const socket = join(dir, 'csi.sock')
  const dataDir = join(dir, 'data')
  // The driver is not measured: both builds call that of this build.
  const driver = await startFakeDriver({ socket, name: DRIVER, nodes: NODES })
  const flags = workload.isSeparate ? [] : ['--driver-socket', socket]
  const server = await startServer({ dataDir, profileDir, command: 'up', flags, programs })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts = startRole<OpenBurstJob | 'run', BurstResult>('burst')
  const processes: Record<string, Pick<Program, 'cpuMs'>> = { server }
  let provisioner: Program | undefined
  if (workload.isSeparate) {
    const kubeconfig = join(dataDir, 'admin.kubeconfig')
    provisioner = await startProvisioner({ kubeconfig, socket, profileDir, programs })
    processes.provisioner = provisioner
  }
  const bench: Bench = {
    cpuMs: Object.fromEntries(Object.keys(processes).map((process) => [process, []])),
    post: (path, body) => post(endpoint, path, body),
    async postNode(node) {
      await bench.post('/api/v1/nodes', { metadata: { name: node } })
      await bench.post('/apis/storage.k8s.io/v1/csinodes', {
        metadata: { name: node },
        spec: { drivers: [{ name: DRIVER, nodeID: node, topologyKeys: [] }] },
      })
    },
    async openBurst({ request, watch, until }, after) {
      await bursts.run({
        do: 'open',
        endpoint,
        clients: CLIENTS,
        count: OPERATIONS,
        after,
        request,
        watch: { method: 'GET', path: `${watch}?watch=1` },
        until,
      })
      return () => bursts.run('run')
    },
    burst: async (operations, after) => (await bench.openBurst(operations, after))(),
    async round(number, isWarmUp) {
      const round = { number, after: number * OPERATIONS }
      await workload.prepare?.(bench, round)
      const operations = workload.operations(round)
      const run = await bench.openBurst(operations, operations.isEdit ? 0 : round.after)
      await sleep(SETTLE_MS)
      const startMs = Object.values(processes).map((process) => process.cpuMs())
      await run()
      await sleep(SETTLE_MS)
      if (isWarmUp) return
      for (const [index, [process, program]] of Object.entries(processes).entries()) {
        bench.cpuMs[process]!.push((program.cpuMs() - startMs[index]!) / OPERATIONS)
      }
    },
    async close() {
      bursts.stop()
      await provisioner?.stop()
      await server.stop()
      await driver.stop()
    },
  }
  return bench
}
