// Measures the modification of volume attributes: bursts of edits sent over HTTPS to `stowage up` on a durable store,
// with a driver that responds immediately, each timed from its edit to the event that shows the new class; the writes per
// modification, without events; and the cost of an attributes class when volumes are provisioned.
//   claims    claims that change their attributes class at once
//   creates   claims provisioned with and without an attributes class, alternately
//   stress    modelled on the stress test of KEP-3751: volumes modified at 5 per second and all at once, by `stowage resizer`
//             alone
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { countWrites } from './expansion.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { buildClaim } from './lib/claims.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, openAll, type RequestText } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { residentMb, startFakeDriver, startProvisioner, startResizer, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const CLIENTS = 128
const PER_SECOND_MIN = 300
const WRITES_MAX = 3
/** The rate with an attributes class compared with the rate without. */
const CREATES_RATIO_MIN = 0.95
const CREATES_AT_ONCE = 32
const CREATE_PAIRS = { short: 60, long: 150 }
/** A new server takes longer for its first claims. */
const WARM_UP_PAIRS = 30

/** Measured rounds by number of claims modified at once. */
const ROUNDS = { short: { 250: 2, 1000: 2, 3000: 1 }, long: { 250: 5, 1000: 5, 4000: 3, 10000: 1 } }
/** Smaller bursts only show how cost grows. */
const FIGURE_CLAIMS_MIN = 1_000

const STRESS_VOLUMES = 500
/** How many of these volumes are modified at 5 per second. */
const SLOW_VOLUMES = { short: 40, long: 500 }
const STRESS_PER_SECOND = 5
/** From the graduation tests of the upstream external-resizer. */
const UPSTREAM = {
  cores: 0.33,
  residentMb: 43,
  of: 'the stress test of the upstream resizer, 500 volumes at 5 per second, KEP-3751',
}

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'modifiable'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const ATTRIBUTES_CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const IOPS: Readonly<Record<string, string>> = { bronze: '250', silver: '500', gold: '1000' }

export const modifySuite: Suite = {
  parts: {
    claims: measureBursts,
    creates: measureCreates,
    stress: measureStress,
  },
}

async function measureBursts(options: PartOptions): Promise<Figure[]> {
  const { isLong, progress } = options
  const plannedRounds = Object.entries(isLong ? ROUNDS.long : ROUNDS.short)
  const maxClaims = Math.max(...plannedRounds.map(([claims]) => Number(claims)))
  const bench = await openBench(options, { drivesInProcess: true })
  const figures: Figure[] = []
  const points: GrowthPoint[] = []
  let rounds = 0
  /** Each round changes the same claims to a new attributes class. */
  async function change(claims: number): Promise<Round> {
    const round = ++rounds
    // The limit: as many durable edits to the same claims by the same clients, to which no controller reacts.
    const label = { metadata: { labels: { round: `r${round}` } } }
    const labelEdits = await bench.burst({
      count: claims,
      after: 0,
      request: editRequest(label),
      until: `"round":"r${round}"`,
    })
    const className = `class-${round}`
    await bench.createClass(className, String(1_000 + round))
    const countedResult = await countWrites(bench.endpoint, () => bench.change(claims, className))
    return { labelEdits, ...countedResult }
  }
  try {
    progress(`creating ${formatCount(maxClaims)} claims`)
    await bench.fill({ count: maxClaims, after: 0, className: 'silver' })
    progress('warming up')
    await change(FIGURE_CLAIMS_MIN)
    for (const [claims, roundCount] of plannedRounds) {
      const size = Number(claims)
      const measuredRounds: Round[] = []
      while (measuredRounds.length < roundCount) {
        progress(`modifying ${formatCount(size)}, round ${measuredRounds.length + 1} of ${roundCount}`)
        measuredRounds.push(await change(size))
      }
      points.push({ size, ms: 1_000 * medianOf(measuredRounds.map(({ result }) => result.seconds)) })
      if (size >= FIGURE_CLAIMS_MIN) figures.push(...burstFigures(size, measuredRounds))
    }
  } finally {
    await bench.close()
  }
  return [...figures, toTotalGrowthFigure('claims modified', { of: 'claims', points })]
}

interface Round {
  readonly labelEdits: BurstResult
  readonly result: BurstResult
  /** The number of writes to claims and volumes, including the user's edits. */
  readonly writes: number
}

function burstFigures(claims: number, rounds: readonly Round[]): Figure[] {
  const median = (read: (round: Round) => number) => medianOf(rounds.map(read))
  const description = `${formatCount(claims)} claims modified at once`
  const limit = { value: median(({ labelEdits }) => claims / labelEdits.seconds), of: 'as many label edits' }
  const rate = median(({ result }) => claims / result.seconds)
  return [
    { name: description, unit: '/s', value: rate, limit, target: { valueMin: PER_SECOND_MIN } },
    { name: `${description}, p99`, unit: 'ms', value: median(({ result }) => result.p99Ms) },
    {
      name: `${description}, writes per claim, without the edit`,
      unit: 'writes',
      value: median(({ writes }) => writes / claims - 1),
      target: { valueMax: WRITES_MAX },
    },
  ]
}

/**
 * Alternates small batches with and without an attributes class, so that both run under the same load with the same number of
 * claims. A short stall changes neither median.
 */
async function measureCreates(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, { drivesInProcess: true })
  const rates: Record<'with' | 'without', number[]> = { with: [], without: [] }
  try {
    const pairs = WARM_UP_PAIRS + (options.isLong ? CREATE_PAIRS.long : CREATE_PAIRS.short)
    const batches = await bench.openBatches(CREATES_AT_ONCE)
    for (let pair = 0; pair < pairs; pair++) {
      if (pair % 50 === 0) options.progress(`volumes with and without an attributes class, pair ${pair} of ${pairs}`)
      for (const variant of pair % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
        const seconds = await batches.run(variant === 'with' ? 'gold' : undefined)
        if (pair >= WARM_UP_PAIRS) rates[variant].push(CREATES_AT_ONCE / seconds)
      }
    }
    batches.close()
  } finally {
    await bench.close()
  }
  return [
    {
      name: `claims with an attributes class provisioned, ${CREATES_AT_ONCE} at once`,
      unit: '/s',
      value: medianOf(rates.with),
      limit: { value: medianOf(rates.without), of: 'the same without an attributes class' },
      target: { ratioMin: CREATES_RATIO_MIN },
    },
  ]
}

async function measureStress(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, { drivesInProcess: false })
  const { kubeconfig, socket } = bench
  const { profileDir } = options
  try {
    options.progress(`creating ${STRESS_VOLUMES} volumes`)
    const provisioner = await startProvisioner({ kubeconfig, socket })
    await bench.fill({ count: STRESS_VOLUMES, after: 0, className: 'silver' })
    await provisioner.stop()
    const resizer = await startResizer({ kubeconfig, socket, profileDir })
    try {
      const figures: Figure[] = []
      const slowVolumes = options.isLong ? SLOW_VOLUMES.long : SLOW_VOLUMES.short
      const runs = [
        {
          volumes: slowVolumes,
          rate: `${STRESS_PER_SECOND} per second`,
          run: () => bench.changeSlowly(slowVolumes, 'gold'),
        },
        { volumes: STRESS_VOLUMES, rate: 'all at once', run: () => bench.change(STRESS_VOLUMES, 'bronze') },
      ]
      for (const { volumes, rate, run } of runs) {
        options.progress(`${volumes} volumes, ${rate}`)
        const { peakCores, peakMb, errors } = await bench.observePeaks(resizer, run)
        if (errors > 0) throw new Error(`${errors} modifications failed`)
        const name = `${volumes} volumes modified, ${rate}, by a separate resizer: peak`
        figures.push(
          { name, unit: 'cores', value: peakCores, peer: { value: UPSTREAM.cores, of: UPSTREAM.of } },
          { name, unit: 'MB', value: peakMb, peer: { value: UPSTREAM.residentMb, of: UPSTREAM.of } },
        )
      }
      options.note(`All ${slowVolumes + STRESS_VOLUMES} modifications by a separate resizer finished without errors.`)
      return figures
    } finally {
      await resizer.stop()
    }
  } finally {
    await bench.close()
  }
}

interface Fill {
  readonly count: number
  /** The last number already used. */
  readonly after: number
  readonly className: string | undefined
}

async function openBench(options: PartOptions, { drivesInProcess }: { readonly drivesInProcess: boolean }) {
  const { dir, profileDir } = options
  const socket = join(dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir })
  const dataDir = join(dir, 'data')
  const flags = drivesInProcess ? ['--driver-socket', socket] : []
  const server = await startServer({ dataDir, profileDir, command: 'up', flags })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts = startRole<BurstJob, BurstResult>('burst')
  await post(endpoint, '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: CLASS }, provisioner: DRIVER })
  const createClass = (name: string, iops: string) =>
    post(endpoint, ATTRIBUTES_CLASSES, { metadata: { name }, driverName: DRIVER, parameters: { iops } })
  for (const [name, iops] of Object.entries(IOPS)) await createClass(name, iops)

  const burst = (job: { count: number; after: number; request: RequestText; until: string }) =>
    bursts.run({
      endpoint,
      clients: CLIENTS,
      count: job.count,
      after: job.after,
      request: job.request,
      watch: { method: 'GET', path: `${CLAIMS}?watch=1` },
      until: job.until,
    })
  const currentClassText = (className: string) => `"currentVolumeAttributesClassName":"${className}"`
  const requestClass = (className: string) => editRequest({ spec: { volumeAttributesClassName: className } })

  return {
    endpoint,
    socket,
    kubeconfig: join(dataDir, 'admin.kubeconfig'),
    createClass,
    burst,
    fill: ({ count, after, className }: Fill) =>
      burst({
        count,
        after,
        request: createRequest(className),
        until: IS_BOUND,
      }),
    /** Opens connections. `run` creates a claim on each of them and resolves to the seconds until all are Bound. */
    async openBatches(size: number) {
      let [createdCount, missingCount] = [0, 0]
      let startMs = 0
      let settle = { resolve: (_seconds: number) => {}, reject: (_error: Error) => {} }
      const connections = await openAll(endpoint, size, (error) => settle.reject(error))
      const boundNames = new Set<string>()
      const watcher = await watchClaims(endpoint, (line) => {
        const name = line.includes(IS_BOUND) && nameIn(line)
        if (!name || boundNames.has(name)) return
        boundNames.add(name)
        if (--missingCount === 0) settle.resolve((performance.now() - startMs) / 1_000)
      })
      return {
        run: (className: string | undefined) =>
          new Promise<number>((resolve, reject) => {
            settle = { resolve, reject }
            missingCount = size
            const request = numberedRequest(createRequest(className))
            startMs = performance.now()
            for (const connection of connections) {
              connection.send(request(++createdCount), ({ status }) => {
                if (status >= 300) reject(new Error(`a create failed with status ${status}`))
              })
            }
          }),
        close() {
          for (const connection of [...connections, watcher]) connection.close()
        },
      }
    },
    change: (claims: number, className: string) =>
      burst({ count: claims, after: 0, request: requestClass(className), until: currentClassText(className) }),
    /** Sends edits at a fixed rate, whether earlier ones have finished or not. */
    async changeSlowly(claims: number, className: string): Promise<void> {
      const changedNames = new Set<string>()
      const watcher = await watchClaims(endpoint, (line) => {
        if (line.includes(currentClassText(className))) changedNames.add(nameIn(line))
      })
      const connection = await openConnection(endpoint, () => {})
      const request = numberedRequest(requestClass(className))
      const startMs = performance.now()
      for (let number = 1; number <= claims; number++) {
        await waitUntil(startMs + (number * 1_000) / STRESS_PER_SECOND)
        connection.send(request(number), ({ status }) => {
          if (status >= 300) throw new Error(`an edit failed with status ${status}`)
        })
      }
      while (changedNames.size < claims) await waitUntil(performance.now() + 50)
      connection.close()
      watcher.close()
    },
    /** Returns the peak use of a program while `run` runs, sampled every second, and the number of failed modifications. */
    async observePeaks(program: { readonly pid: number; cpuMs(): number }, run: () => Promise<unknown>) {
      let [peakCores, peakMb, errors] = [0, 0, 0]
      const watcher = await watchClaims(endpoint, (line) => {
        if (line.includes('"type":"ModifyVolumeError"')) errors++
      })
      let [lastCpuMs, lastMs] = [program.cpuMs(), performance.now()]
      const sample = () => {
        const [cpuMs, nowMs] = [program.cpuMs(), performance.now()]
        peakCores = Math.max(peakCores, (cpuMs - lastCpuMs) / (nowMs - lastMs))
        peakMb = Math.max(peakMb, residentMb(program.pid))
        lastCpuMs = cpuMs
        lastMs = nowMs
      }
      const timer = setInterval(sample, 1_000)
      try {
        await run()
        sample()
      } finally {
        clearInterval(timer)
        watcher.close()
      }
      return { peakCores, peakMb, errors }
    },
    async close() {
      bursts.stop()
      await server.stop()
      await driver.stop()
    },
  }
}

async function watchClaims(endpoint: Endpoint, onLine: (line: string) => void): Promise<{ close(): void }> {
  const connection = await openConnection(endpoint, () => {})
  await connection.read(numberedRequest({ method: 'GET', path: `${CLAIMS}?watch=1` })(0), onLine)
  return connection
}

const waitUntil = (atMs: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())))

const IS_BOUND = '"phase":"Bound"'
const nameIn = (line: string): string => /"name":"([a-z0-9-]+)"/.exec(line)?.[1] ?? ''

const createRequest = (className: string | undefined): RequestText => ({
  method: 'POST',
  path: CLAIMS,
  body: JSON.stringify(aClaim(className)),
})

const editRequest = (change: object): RequestText => ({
  method: 'PATCH',
  path: `${CLAIMS}/claim-${NUMBER}`,
  body: JSON.stringify(change),
})

function aClaim(className: string | undefined) {
  const { spec, ...fields } = buildClaim(`claim-${NUMBER}`)
  const classFields = className === undefined ? {} : { volumeAttributesClassName: className }
  return { ...fields, spec: { ...spec, storageClassName: CLASS, ...classFields } }
}
