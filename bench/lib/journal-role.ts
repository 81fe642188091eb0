// Runs a server in this process, as `stowage up` does, with a journal of volumes that can be switched off and on. Rounds with and
// without it then run the same machine code on the same heap, unlike those of two processes, which V8 optimizes differently.
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { PerformanceObserver } from 'node:perf_hooks'
import { JOURNAL_LIMITS, type Journal, type JournalTransaction, mergeUnmerged } from '../../src/apiserver/index.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { limitHeapGrowth } from '../../src/base/heap/growth.ts'
import { parsePodFlags } from '../../src/cli/flags/pod-options.ts'
import { checkAccountTokenSettings } from '../../src/processes/server/account-tokens.ts'
import { type ServeOptions, serve } from '../../src/processes/server/serve.ts'
import { createLog } from '../../src/runtime/log/log.ts'
import type { Store } from '../../src/store/index.ts'
import { type ReplayTimes, replayInTurns, TransactionRecorder } from './journal-replay.ts'

export type JournalJob =
  /** Returns the port. */
  | { readonly do: 'start'; readonly dataDir: string; readonly driverSocket: string }
  /** Switches the journal on or off, and collects garbage of the previous round. */
  | { readonly do: 'beginRound'; readonly hasJournal: boolean }
  /** Merges the records of the round, as the server does every few seconds. Returns what the round has used. */
  | { readonly do: 'endRound' }
  /** Records the transactions of the next bursts, without the journal. */
  | { readonly do: 'record' }
  /** Replays the recorded transactions. Returns ReplayTimes. */
  | { readonly do: 'replay'; readonly dir: string; readonly rounds: number }
  | { readonly do: 'startProfile' }
  | { readonly do: 'writeProfile'; readonly file: string }
  | { readonly do: 'startAllocationProfile' }
  | { readonly do: 'writeAllocationProfile'; readonly file: string }
  | { readonly do: 'stop' }

/** What a process has used in a round. */
export interface RoundUsage {
  /** CPU time of all threads. */
  readonly cpuMs: number
  readonly collectionMs: number
  /** Bytes that the process has passed to write calls. */
  readonly writtenBytes: number
  readonly records: number
  readonly recordBytes: number
  readonly chunks: number
}

/** Samples of the CPU profile are this far apart. */
const SAMPLE_MICROSECONDS = 250
/** Allocations are sampled once in this many bytes on average. */
const SAMPLE_BYTES = 16 * 1024

let server: SwitchableServer | undefined

export async function runJournal(job: JournalJob): Promise<unknown> {
  if (job.do === 'start') {
    server = await startServer(job)
    return server.port
  }
  if (!server) throw new Error('the server is not started')
  switch (job.do) {
    case 'beginRound':
      return server.beginRound(job.hasJournal)
    case 'endRound':
      return server.endRound()
    case 'record':
      return server.record()
    case 'replay':
      return server.replay(job.dir, job.rounds)
    case 'startProfile':
      return server.startProfile()
    case 'writeProfile':
      return server.writeProfile(job.file)
    case 'startAllocationProfile':
      return server.startAllocationProfile()
    case 'writeAllocationProfile':
      return server.writeAllocationProfile(job.file)
    case 'stop':
      return server.stop()
  }
}

interface SwitchableServer {
  readonly port: number
  beginRound(hasJournal: boolean): void
  endRound(): Promise<RoundUsage>
  record(): void
  replay(dir: string, rounds: number): Promise<ReplayTimes>
  startProfile(): Promise<void>
  writeProfile(file: string): Promise<void>
  startAllocationProfile(): Promise<void>
  writeAllocationProfile(file: string): Promise<void>
  stop(): Promise<void>
}

async function startServer({
  dataDir,
  driverSocket,
}: {
  readonly dataDir: string
  readonly driverSocket: string
}): Promise<SwitchableServer> {
  limitHeapGrowth()
  let collectionMs = 0
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectionMs += duration
  }).observe({ entryTypes: ['gc'] })
  const controller = new AbortController()
  let switchable: SwitchableJournal | undefined
  let end: Promise<void> | undefined
  const url = await new Promise<string>((resolve, reject) => {
    end = serve({
      ...optionsOf({ dataDir, driverSocket, signal: controller.signal }),
      wrapJournal: (journal, store) => {
        switchable = new SwitchableJournal(journal, store)
        return switchable.journal
      },
      onReady: (ready) => resolve(ready.url),
    })
    end.catch(reject)
  })
  const journal = switchable!
  const session = new Session()
  session.connect()
  const usage = (): RoundUsage => ({
    cpuMs: cpuMs(),
    collectionMs,
    writtenBytes: writtenBytes(),
    ...journal.usage(),
  })
  let before = usage()

  return {
    port: Number(new URL(url).port),
    beginRound(hasJournal) {
      journal.switch(hasJournal)
      global.gc?.({ type: 'minor' })
      before = usage()
    },
    async endRound() {
      await journal.merge()
      global.gc?.({ type: 'minor' })
      const after = usage()
      const keys = Object.keys(after) as (keyof RoundUsage)[]
      return Object.fromEntries(keys.map((key) => [key, after[key] - before[key]])) as unknown as RoundUsage
    },
    record: () => journal.record(),
    replay: (dir, rounds) => replayInTurns(dir, journal.takeRecorded(), rounds),
    async startProfile() {
      await session.post('Profiler.enable')
      await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_MICROSECONDS })
      await session.post('Profiler.start')
    },
    async writeProfile(file) {
      const { profile } = await session.post('Profiler.stop')
      await writeFile(file, JSON.stringify(profile))
      await session.post('Profiler.disable')
    },
    async startAllocationProfile() {
      const flags = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }
      await session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLE_BYTES, ...flags })
    },
    async writeAllocationProfile(file) {
      const { profile } = await session.post('HeapProfiler.stopSampling')
      await writeFile(file, JSON.stringify(profile))
    },
    async stop() {
      controller.abort()
      await end
    },
  }
}

/** A journal that can be switched off, so that the server works as with `--journal off`. */
class SwitchableJournal {
  readonly journal: Journal
  readonly #own: Journal
  readonly #store: Store
  readonly #sources = new Set<Parameters<Journal['recordActivitiesOf']>[0]>()
  #isOn = true
  #recorder: TransactionRecorder | undefined
  #stopSources: (() => void)[] = []

  constructor(own: Journal, store: Store) {
    this.#own = own
    this.#store = store
    this.journal = {
      ...own,
      get pending() {
        return own.pending
      },
      begin: () => this.#recorder?.transaction ?? (this.#isOn ? own.begin() : NO_TRANSACTION),
      addActivities: (process, activities) => {
        if (this.#isOn) own.addActivities(process, activities)
      },
      recordActivitiesOf: (source) => {
        this.#sources.add(source)
        if (this.#isOn) this.#stopSources.push(own.recordActivitiesOf(source))
        return () => {}
      },
    }
  }

  switch(isOn: boolean): void {
    if (isOn === this.#isOn) return
    this.#isOn = isOn
    for (const stop of this.#stopSources.splice(0)) stop()
    if (isOn) for (const source of this.#sources) this.#stopSources.push(this.#own.recordActivitiesOf(source))
  }

  record(): void {
    this.switch(false)
    const recorder = new TransactionRecorder()
    this.#recorder = recorder
    for (const source of this.#sources)
      this.#stopSources.push(source.subscribeActivities((activity) => recorder.addActivity(activity)))
  }

  takeRecorded(): TransactionRecorder['groups'] {
    for (const stop of this.#stopSources.splice(0)) stop()
    const groups = this.#recorder?.groups ?? []
    this.#recorder = undefined
    return groups
  }

  async merge(): Promise<void> {
    if (this.#isOn) await mergeUnmerged(this.#store, this.#own.unmergedChunks!, JOURNAL_LIMITS)
  }

  usage(): Pick<RoundUsage, 'records' | 'recordBytes' | 'chunks'> {
    const { changes, activities, bytes, chunks } = this.#own.stats
    return { records: changes + activities, recordBytes: bytes, chunks }
  }
}

const NO_TRANSACTION: JournalTransaction = { withRecords: (_, writes) => writes, settle: () => {} }

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const writtenBytes = (): number => Number(/^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

/** The options of `stowage up --nodes 0 --log-level warn --scrub-rate 0` on a free port, without rotation of the audit log. */
const optionsOf = ({
  dataDir,
  driverSocket,
  signal,
}: {
  readonly dataDir: string
  readonly driverSocket: string
  readonly signal: AbortSignal
}): Omit<ServeOptions, 'onReady'> => ({
  dataDir,
  store: undefined,
  etcdTls: { ca: undefined, cert: undefined, key: undefined },
  pkiDir: undefined,
  pkiSource: undefined,
  listen: { host: '127.0.0.1', port: 0 },
  servingHosts: [],
  accountTokens: checkAccountTokenSettings({
    issuer: 'https://kubernetes.default.svc',
    lifetimeMsMax: 8_760 * 3_600_000,
  }),
  featureGates: '',
  nodeMonitorGraceMs: undefined,
  expansionQuota: 'high-water-mark',
  runtimeConfig: '',
  historyMinutes: 5,
  scrubBytesPerSecond: 0,
  upgradesEtcdFormat: false,
  audit: { policyFile: undefined, logPath: undefined, maxSize: 0, maxAge: 0, maxBackup: 0 },
  hasJournal: true,
  tracesUrl: undefined,
  encryptionProviderConfig: undefined,
  runsControllers: true,
  warmsUp: false,
  volumesDir: undefined,
  drivers: [{ is: 'socket', path: driverSocket }],
  nodes: 0,
  poolBytes: undefined,
  maxVolumesPerNode: undefined,
  podOptions: parsePodFlags({}),
  runsScheduler: true,
  capacityMissingForMs: undefined,
  reservesCapacity: true,
  defaultPlacement: undefined,
  lostVolumePolicy: undefined,
  throttle: undefined,
  clock: systemClock(),
  random: systemRandom(),
  log: createLog('warn', 'json'),
  signal,
  onNodes: () => {},
  onDriver: () => {},
})
