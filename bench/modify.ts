// Attributes that change, measured from outside: bursts of edits sent over HTTPS to `stowage up` on a durable store, with a
// driver that answers at once, each timed from its edit to the event that shows the new class; how many writes a change
// takes, events about it left out; and what a class costs when volumes are made.
//   thousand, tenThousand   claims that get another class at once
//   creates                 claims that become volumes with a class and without, in turns
//   stress                  the design document's: 500 volumes, five a second and all at once, by `stowage resizer` alone
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { countWrites } from './expansion.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { claimNamed } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, openAll, type RequestText } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { residentMb, startFakeDriver, startProvisioner, startResizer, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'

const CLIENTS = 128
const PER_SECOND_MIN = 300
const WRITES_MAX = 3
/** How fast volumes are made with a class, to without. */
const CREATES_RATIO_MIN = 0.95
const CREATES_AT_ONCE = 32
const CREATE_PAIRS = 150
/** A server that has just started takes twice as long for its first few hundred claims. */
const WARM_UP_PAIRS = 50

const STRESS_VOLUMES = 500
const STRESS_PER_SECOND = 5
/** As upstream's graduation tests of the external resizer report. */
const UPSTREAM = { cores: 0.33, residentMb: 43 }

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'modifiable'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const ATTRIBUTES_CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const IOPS: Readonly<Record<string, string>> = { silver: '500', gold: '1000' }

export const modifySuite: Suite = {
  parts: {
    thousand: (options) => measureBursts(options, { claims: 1_000, rounds: 4 }),
    tenThousand: (options) => measureBursts(options, { claims: 10_000, rounds: 1 }),
    creates: measureCreates,
    stress: measureStress,
  },
}

async function measureBursts(options: PartOptions, { claims, rounds }: { claims: number; rounds: number }) {
  const bench = await openBench(options, { drivesInProcess: true })
  const rates: number[] = []
  const idleRates: number[] = []
  const p99s: number[] = []
  const writes: number[] = []
  try {
    options.progress(`${claims.toLocaleString('en')} claims`)
    await bench.fill({ count: claims, after: 0, className: 'silver' })
    for (let round = 0; round < rounds; round++) {
      options.progress(`${claims.toLocaleString('en')} changes, round ${round + 1} of ${rounds}`)
      // The unavoidable part: as many durable edits of the same claims by the same clients, that mean nothing to anybody.
      const label = { metadata: { labels: { round: `r${round}` } } }
      const idle = await bench.burst({ count: claims, after: 0, request: edit(label), until: `"round":"r${round}"` })
      const counted = await countWrites(bench.endpoint, () => bench.change(claims, round % 2 === 0 ? 'gold' : 'silver'))
      if (round === 0 && rounds > 1) continue // it warms up
      rates.push(claims / counted.result.seconds)
      idleRates.push(claims / idle.seconds)
      p99s.push(counted.result.p99Ms)
      writes.push(counted.writes / claims - 1)
    }
  } finally {
    await bench.close()
  }
  const what = `${claims.toLocaleString('en')} claims given another class at once`
  const limit = { value: medianOf(idleRates), of: 'edits that mean nothing' }
  return [
    { name: what, unit: '/s', value: medianOf(rates), limit, target: { valueMin: PER_SECOND_MIN } },
    { name: `${what}, p99`, unit: 'ms', value: medianOf(p99s) },
    {
      name: `${what}, writes of claim and volume for each, besides the edit`,
      unit: 'writes',
      value: medianOf(writes),
      target: { valueMax: WRITES_MAX },
    },
  ] satisfies Figure[]
}

/**
 * A few with a class, as many without, over and over: both meet the same machine and as many claims as there are by then,
 * and what holds up the server for a moment changes neither median.
 */
async function measureCreates(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, { drivesInProcess: true })
  const rates: Record<'with' | 'without', number[]> = { with: [], without: [] }
  try {
    const batches = await bench.openBatches(CREATES_AT_ONCE)
    for (let pair = 0; pair < WARM_UP_PAIRS + CREATE_PAIRS; pair++) {
      if (pair % 50 === 0)
        options.progress(`volumes with and without a class, pair ${pair} of ${WARM_UP_PAIRS + CREATE_PAIRS}`)
      for (const how of pair % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
        const seconds = await batches.make(how === 'with' ? 'gold' : undefined)
        if (pair >= WARM_UP_PAIRS) rates[how].push(CREATES_AT_ONCE / seconds)
      }
    }
    batches.close()
  } finally {
    await bench.close()
  }
  return [
    {
      name: `claims with a class become volumes, ${CREATES_AT_ONCE} at once`,
      unit: '/s',
      value: medianOf(rates.with),
      limit: { value: medianOf(rates.without), of: 'the same without a class' },
      target: { ratioMin: CREATES_RATIO_MIN },
    },
  ]
}

async function measureStress(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, { drivesInProcess: false })
  const { kubeconfig, socket } = bench
  const { profileDir } = options
  try {
    options.progress(`${STRESS_VOLUMES} volumes`)
    const provisioner = await startProvisioner({ kubeconfig, socket })
    await bench.fill({ count: STRESS_VOLUMES, after: 0, className: 'silver' })
    await provisioner.stop()
    const resizer = await startResizer({ kubeconfig, socket, profileDir })
    try {
      const figures: Figure[] = []
      const runs = {
        [`${STRESS_PER_SECOND} a second`]: () => bench.changeSlowly(STRESS_VOLUMES, 'gold'),
        'all at once': () => bench.change(STRESS_VOLUMES, 'silver'),
      }
      for (const [how, run] of Object.entries(runs)) {
        options.progress(`${STRESS_VOLUMES} volumes, ${how}`)
        const { peakCores, peakMb, errors } = await bench.observed(resizer, run)
        if (errors > 0) throw new Error(`${errors} claims said that a change failed`)
        const name = `${STRESS_VOLUMES} volumes changed, ${how}, by a resizer of its own`
        const of = 'what upstream reports of its own'
        figures.push(
          { name: `${name}: peak`, unit: 'cores', value: peakCores, limit: { value: UPSTREAM.cores, of } },
          { name: `${name}: peak`, unit: 'MB', value: peakMb, limit: { value: UPSTREAM.residentMb, of } },
        )
      }
      options.note(`All ${2 * STRESS_VOLUMES} changes finished, 0 errors.`)
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
  /** Numbers used before. */
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
  for (const [name, iops] of Object.entries(IOPS))
    await post(endpoint, ATTRIBUTES_CLASSES, { metadata: { name }, driverName: DRIVER, parameters: { iops } })

  const burst = (given: { count: number; after: number; request: RequestText; until: string }) =>
    bursts.run({
      endpoint,
      clients: CLIENTS,
      count: given.count,
      after: given.after,
      create: given.request,
      watch: { method: 'GET', path: `${CLAIMS}?watch=1` },
      until: given.until,
    })
  const isNow = (className: string) => `"currentVolumeAttributesClassName":"${className}"`
  const wants = (className: string) => edit({ spec: { volumeAttributesClassName: className } })

  return {
    endpoint,
    socket,
    kubeconfig: join(dataDir, 'admin.kubeconfig'),
    burst,
    fill: ({ count, after, className }: Fill) =>
      burst({
        count,
        after,
        request: create(className),
        until: IS_BOUND,
      }),
    /** So many claims at once on as many connections, each time anew; how long it takes until all are Bound. */
    async openBatches(size: number) {
      let [made, missing] = [0, 0]
      let startMs = 0
      let settle = { resolve: (_seconds: number) => {}, reject: (_error: Error) => {} }
      const connections = await openAll(endpoint, size, (error) => settle.reject(error))
      const bound = new Set<string>()
      const watcher = await watchClaims(endpoint, (line) => {
        const name = line.includes(IS_BOUND) && nameIn(line)
        if (!name || bound.has(name)) return
        bound.add(name)
        if (--missing === 0) settle.resolve((performance.now() - startMs) / 1_000)
      })
      return {
        make: (className: string | undefined) =>
          new Promise<number>((resolve, reject) => {
            settle = { resolve, reject }
            missing = size
            const request = numberedRequest(create(className))
            startMs = performance.now()
            for (const connection of connections) {
              connection.ask(request(++made), ({ status }) => {
                if (status >= 300) reject(new Error(`a create was answered ${status}`))
              })
            }
          }),
        close() {
          for (const one of [...connections, watcher]) one.close()
        },
      }
    },
    change: (count: number, className: string) =>
      burst({ count, after: 0, request: wants(className), until: isNow(className) }),
    /** As many a second as the document says, each at its time whether the one before has finished or not. */
    async changeSlowly(count: number, className: string): Promise<void> {
      const changed = new Set<string>()
      const watcher = await watchClaims(endpoint, (line) => {
        if (line.includes(isNow(className))) changed.add(nameIn(line))
      })
      const connection = await openConnection(endpoint, () => {})
      const request = numberedRequest(wants(className))
      const startMs = performance.now()
      for (let number = 1; number <= count; number++) {
        await waitUntil(startMs + (number * 1_000) / STRESS_PER_SECOND)
        connection.ask(request(number), ({ status }) => {
          if (status >= 300) throw new Error(`an edit was answered ${status}`)
        })
      }
      while (changed.size < count) await waitUntil(performance.now() + 50)
      for (const one of [connection, watcher]) one.close()
    },
    /** What a process takes at its worst second while something runs, and how many claims say that a change failed. */
    async observed(process: { readonly pid: number; cpuMs(): number }, run: () => Promise<unknown>) {
      let [peakCores, peakMb, errors] = [0, 0, 0]
      const watcher = await watchClaims(endpoint, (line) => {
        if (line.includes('"type":"ModifyVolumeError"')) errors++
      })
      let [lastCpuMs, lastMs] = [process.cpuMs(), performance.now()]
      const look = () => {
        const [cpuMs, nowMs] = [process.cpuMs(), performance.now()]
        peakCores = Math.max(peakCores, (cpuMs - lastCpuMs) / (nowMs - lastMs))
        peakMb = Math.max(peakMb, residentMb(process.pid))
        lastCpuMs = cpuMs
        lastMs = nowMs
      }
      const looking = setInterval(look, 1_000)
      try {
        await run()
        look()
      } finally {
        clearInterval(looking)
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

const create = (className: string | undefined): RequestText => ({
  method: 'POST',
  path: CLAIMS,
  body: JSON.stringify(aClaim(className)),
})

const edit = (change: object): RequestText => ({
  method: 'PATCH',
  path: `${CLAIMS}/claim-${NUMBER}`,
  body: JSON.stringify(change),
})

function aClaim(className: string | undefined) {
  const { spec, ...rest } = claimNamed(`claim-${NUMBER}`)
  const withClass = className === undefined ? {} : { volumeAttributesClassName: className }
  return { ...rest, spec: { ...spec, storageClassName: CLASS, ...withClass } }
}
