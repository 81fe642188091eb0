// The etcd store, which several API servers can share. Writes are etcd transactions (transactor.ts), which are sent in
// groups (commit-queue.ts, group.ts). Reads and watches are served from an in-memory replica (replica.ts) that follows etcd
// (feed.ts). Reads are linearizable: a read of the newest state fetches etcd's current revision and waits until the replica
// has reached it.
//
// etcd cannot compact by prefix, so the history of `brief` prefixes is shorter only in the replica, until a restart.
// Compaction affects the whole etcd cluster, so the cluster should be dedicated to Stowage or compacted externally.
import type { Clock } from '../../base/clock.ts'
import { deleteExpired } from '../expiry.ts'
import {
  type DamagedRecordError,
  type Decide,
  type Entry,
  type HistoryOptions,
  type ListOptions,
  type ListResult,
  type Revision,
  type Store,
  StoreClosedError,
  type StoreStats,
  StoreUnavailableError,
  type TransactionResult,
  type Watch,
  type WatchOptions,
  WriteRejectedError,
} from '../store.ts'
import { decodeEntries, type ValueTransformer } from '../value-transformer.ts'
import { EtcdClient, EtcdRejectedError, type EtcdTls } from './client.ts'
import { CommitQueue, type CommitResult, type ConditionalTransaction } from './commit-queue.ts'
import { type Feed, type FeedChange, startFeed } from './feed.ts'
import { Compare_CompareTarget, type KeyValue } from './gen/etcd_pb.js'
import { decodeChange, decodeChanges, decodeCommits, encodeGroup, lastRevisionIn } from './group.ts'
import { createHealthCheck } from './health-check.ts'
import { FORMAT, FORMAT_WITHOUT_CHECKSUMS, type Layout, layoutOf, STORE } from './layout.ts'
import { type Change, Replica } from './replica.ts'
import { RevisionMapping } from './revision-mapping.ts'
import { shareRuns } from './shared-run.ts'
import { Transactor } from './transactor.ts'

const PREFIX = '/stowage'
const REQUEST_TIMEOUT_MS = 5_000
const COMPACT_EVERY_MS = 5 * 60_000
const OPERATIONS_MAX = 128 // etcd's default of --max-txn-ops
const REPLAY_REVISIONS_MAX = 200_000 // older history is not loaded when a store is opened
const SNAPSHOT_PAGE_KEYS = 2_000
const TICK_AFTER_MS = 25 // a revision that has not arrived by then may have changed only keys outside the prefix
const EXPIRE_CHECK_MS_MAX = 10_000 // check at least this often, because the wall clock may jump
const RETRY_MS = 1_000 // after a failed expiry or reload

export interface EtcdStoreOptions {
  /** `HOST:PORT` of each member. */
  readonly endpoints: readonly string[]
  /** Prefix of all keys of the store. Default: `/stowage`. */
  readonly prefix?: string
  /** Default: plaintext. */
  readonly tls?: EtcdTls
  readonly clock: Clock
  readonly history?: HistoryOptions
  /** Maximum duration of an etcd call. Default: 5 seconds. */
  readonly requestTimeoutMs?: number
  /** How often etcd is compacted to the retained history. 0 disables it, for an etcd that compacts itself. Default: 5 minutes. */
  readonly compactEveryMs?: number
  /** Maximum number of operations in an etcd transaction (etcd's --max-txn-ops). Default: 128. */
  readonly operationsMax?: number
  /** Default: values are stored as they are. */
  readonly transformer?: ValueTransformer
  /**
   * Whether to change a store without checksums to the newest format, so that values are written with checksums. Versions
   * before 0.2.0 cannot open it afterwards. Default: false.
   */
  readonly upgradesFormat?: boolean
  /** Called for each damaged value that the store reads. */
  readonly onDamage?: (error: DamagedRecordError) => void
}

export class EtcdStore implements Store {
  readonly #options: Required<Omit<EtcdStoreOptions, 'tls' | 'transformer' | 'onDamage'>>
  readonly #transformer: ValueTransformer | undefined
  readonly #clock: Clock
  readonly #client: EtcdClient
  readonly #layout: Layout
  readonly #replica: Replica
  readonly #transactor: Transactor
  readonly #checkHealth: () => Promise<string | undefined>
  readonly #newestRevision = shareRuns(() => this.#fetchNewestRevision())
  readonly #tick = shareRuns(() => this.#writeTick())
  readonly #commits: CommitQueue
  #mapping = new RevisionMapping({ base: 0 })
  /** Whether values are written with a checksum. Set when the format of the store is known. */
  #hasChecksums = true
  #feed: Feed | undefined
  #bytesOnDisk = 0
  #cancelExpiry = () => {}
  #isExpiring = false
  #cancelCompaction = () => {}
  #compactedRevision: Revision = 0
  /** The error with which all calls fail after the store is closed or has failed. */
  #closedError: StoreClosedError | undefined
  #closeRun: Promise<void> | undefined

  static async open(options: EtcdStoreOptions): Promise<EtcdStore> {
    const store = new EtcdStore(options)
    try {
      await store.#start()
      return store
    } catch (error) {
      await store.close()
      throw error
    }
  }

  private constructor({ tls, transformer, onDamage, ...options }: EtcdStoreOptions) {
    this.#transformer = transformer
    this.#options = {
      prefix: PREFIX,
      history: {},
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      compactEveryMs: COMPACT_EVERY_MS,
      operationsMax: OPERATIONS_MAX,
      upgradesFormat: false,
      ...omitUndefined(options),
    }
    const { endpoints, clock, history, requestTimeoutMs } = this.#options
    this.#clock = clock
    this.#client = new EtcdClient({ endpoints, tls, clock, requestTimeoutMs })
    this.#layout = layoutOf(this.#options.prefix)
    this.#checkHealth = createHealthCheck({ clock, check: () => this.#probe(), unresponsiveMessage: 'not responding' })
    this.#replica = new Replica({ clock, history, transformer, onDamage })
    this.#commits = new CommitQueue({
      clock,
      waitMsMax: requestTimeoutMs,
      send: (group) => this.#send(group),
      operationsMax: this.#options.operationsMax,
    })
    this.#transactor = new Transactor({
      get: (key) => this.#replica.get(key),
      list: (prefix) => this.#replica.list({ prefix }).entries,
      revision: () => this.#replica.revision,
      commit: (transaction) => this.#commits.commit(transaction),
      operationsMax: this.#options.operationsMax,
      refresh: () => this.#refresh(),
      catchUp: (revision) => this.#catchUp(revision),
    })
  }

  get revision(): Revision {
    return this.#replica.revision
  }

  async get(key: string): Promise<Entry | undefined> {
    this.#checkOpen()
    await this.#refresh()
    return this.#replica.get(key)
  }

  async list(options: ListOptions): Promise<ListResult> {
    this.#checkOpen()
    const isPast = options.atRevision !== undefined && options.atRevision <= this.#replica.revision
    if (!isPast) await this.#refresh()
    const result = this.#replica.list(options)
    await decodeEntries(result.entries, this.#clock)
    return result
  }

  transact(decide: Decide): Promise<TransactionResult> {
    if (this.#closedError) return Promise.reject(this.#closedError)
    return this.#transactor.transact(decide)
  }

  watch(options: WatchOptions): Watch {
    this.#checkOpen()
    return this.#replica.watch(options)
  }

  stats(): StoreStats {
    const { keys, revision, compactedRevision, historyEntries, historyBytes, watchers } = this.#replica
    return {
      keys,
      revision,
      compactedRevision,
      historyEntries,
      historyBytes,
      bytesOnDisk: this.#bytesOnDisk,
      watchers,
      damagedRecords: this.#replica.damage.length,
    }
  }

  damagedRecords(): readonly DamagedRecordError[] {
    return this.#replica.damage
  }

  async problem(): Promise<string | undefined> {
    return this.#closedError ? 'the store is closed' : this.#checkHealth()
  }

  close(): Promise<void> {
    this.#closeRun ??= this.#close(new StoreClosedError())
    return this.#closeRun
  }

  // Opening

  async #start(): Promise<void> {
    this.#mapping = await this.#findOrCreate()
    await this.#catchUp(await this.#synchronize())
    this.#bytesOnDisk = Number((await this.#client.status()).dbSize)
    this.#scheduleExpiry()
    this.#scheduleCompaction()
  }

  /** Reads the description of the store, or creates the store. Returns its revision mapping. */
  async #findOrCreate(): Promise<RevisionMapping> {
    const key = this.#layout.about
    const { header, succeeded, responses } = await this.#client.txn({
      compare: [{ key, target: Compare_CompareTarget.CREATE, targetUnion: { case: 'createRevision', value: 0n } }],
      success: [{ request: { case: 'requestPut', value: { key, value: encodeAbout(FORMAT) } } }],
      failure: [{ request: { case: 'requestRange', value: { key } } }],
    })
    if (succeeded) return new RevisionMapping({ base: Number(header?.revision) })
    const response = responses[0]?.response
    const about = response?.case === 'responseRange' ? response.value.kvs[0] : undefined
    const { store, format } = parseAbout(about)
    const location = `etcd at ${this.#options.endpoints.join(',')} under ${this.#options.prefix}`
    if (!about || store !== STORE) throw new Error(`${location} is not a Stowage store`)
    if (format !== FORMAT && format !== FORMAT_WITHOUT_CHECKSUMS) {
      throw new Error(
        `${location} is a store of format ${format}; this version of Stowage reads formats ${FORMAT_WITHOUT_CHECKSUMS} and ${FORMAT}`,
      )
    }
    this.#hasChecksums = format === FORMAT
    if (!this.#hasChecksums && this.#options.upgradesFormat) {
      await this.#client.txn({
        success: [{ request: { case: 'requestPut', value: { key, value: encodeAbout(FORMAT) } } }],
      })
      this.#hasChecksums = true
    }
    return new RevisionMapping({ base: Number(about.createRevision) })
  }

  /**
   * Loads the state at the oldest revision to replay and follows etcd from there, so that the replica has the history since.
   * Returns the newest revision.
   */
  async #synchronize(): Promise<Revision> {
    for (;;) {
      const newestRevision = await this.#fetchNewestRevision()
      const oldestRevision = this.#mapping.etcdRevisionOf(0)
      const replayStart = Math.max(oldestRevision, this.#mapping.etcdRevisionOf(newestRevision) - REPLAY_REVISIONS_MAX)
      const startRevision = Math.max(replayStart, await this.#compactedAfter(replayStart))
      try {
        const group = await this.#client.range({ key: this.#layout.group, revision: BigInt(startRevision) })
        const state = await this.#stateAt(startRevision)
        this.#replica.load(state, lastRevisionIn(startRevision, group.kvs[0], this.#mapping))
      } catch (error) {
        if (error instanceof EtcdRejectedError && error.isCompacted) continue // the revision was compacted: start at a later revision
        throw error
      }
      this.#feed = startFeed({
        client: this.#client,
        clock: this.#clock,
        span: this.#layout.allKeys,
        afterRevision: startRevision,
        onChanges: (changes) => this.#apply(changes),
        onCompacted: () => void this.#reload(),
      })
      return newestRevision
    }
  }

  /** Returns etcd's compacted revision if it is after `revision`, otherwise 0. Only a watch response contains it. */
  async #compactedAfter(revision: number): Promise<number> {
    try {
      await this.#client.range({ key: this.#layout.about, countOnly: true, revision: BigInt(revision) })
      return 0
    } catch (error) {
      if (!(error instanceof EtcdRejectedError) || !error.isCompacted) throw error
    }
    return new Promise((resolve, reject) => {
      const cancel = this.#client.watch(
        { key: this.#layout.about, startRevision: BigInt(revision) },
        {
          onResponse: ({ compactRevision }) => {
            if (compactRevision === 0n) return
            cancel()
            resolve(Number(compactRevision))
          },
          onEnd: (reason) => reject(new StoreUnavailableError(`etcd is not responding: ${reason}`)),
        },
      )
    })
  }

  async #stateAt(revision: number): Promise<Change[]> {
    const { start, end } = this.#layout.keys
    const state: Change[] = []
    for (let startKey: Uint8Array = start; ; ) {
      const { kvs, more } = await this.#client.range({
        key: startKey,
        rangeEnd: end,
        limit: BigInt(SNAPSHOT_PAGE_KEYS),
        revision: BigInt(revision),
      })
      for (const kv of kvs) state.push(decodeChange(kv, this.#layout.storeKey(kv.key) as string, this.#mapping))
      const lastKv = kvs.at(-1)
      if (!more || !lastKv) return state
      startKey = Buffer.concat([lastKv.key, Buffer.of(0)])
    }
  }

  /** Ends all watchers and loads the state again, because etcd was compacted while the replica was disconnected. */
  async #reload(): Promise<void> {
    while (!this.#closedError) {
      try {
        await this.#synchronize()
        this.#scheduleExpiry()
        return
      } catch {
        await this.#clock.sleep(RETRY_MS) // until it reconnects, calls fail with StoreUnavailableError
      }
    }
  }

  // Following

  #apply(events: readonly FeedChange[]): void {
    try {
      const { changes, revision } = decodeChanges(events, { layout: this.#layout, mapping: this.#mapping })
      this.#replica.apply(changes, revision)
    } catch (error) {
      this.#fail(`cannot decode a change under ${this.#options.prefix} in etcd: ${(error as Error).message}`, error)
    }
    this.#scheduleExpiry()
  }

  /** Resolves after the replica has applied all writes that any server made before the call. */
  async #refresh(): Promise<void> {
    await this.#catchUp(await this.#newestRevision())
  }

  /**
   * Returns the first store revision of etcd's newest revision. The replica applies all store revisions of an etcd revision together.
   */
  async #fetchNewestRevision(): Promise<Revision> {
    const knownRevision = this.#mapping.etcdRevisionOf(this.#replica.revision)
    const { header } = await this.#client.range({ key: this.#layout.about, countOnly: true })
    const newestEtcdRevision = Number(header?.revision)
    if (newestEtcdRevision < knownRevision)
      throw this.#fail(`etcd went back from revision ${knownRevision} to ${newestEtcdRevision}`)
    return this.#mapping.revisionOf(newestEtcdRevision)
  }

  /** Performs a linearizable read, which fails without a quorum. */
  async #probe(): Promise<undefined> {
    await this.#client.range({ key: this.#layout.about, countOnly: true })
    return undefined
  }

  /**
   * Waits until the replica has reached the revision. The feed does not deliver revisions that changed only keys outside the
   * prefix, so a late revision is resolved by writing the tick key, which arrives after all earlier changes.
   */
  #catchUp(revision: Revision): Promise<void> {
    return this.#waitForRevision(revision, { onLate: () => void this.#tick().catch(() => {}) })
  }

  #waitForRevision(revision: Revision, { onLate }: { onLate?: () => void } = {}): Promise<void> {
    if (revision <= this.#replica.revision) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const stopWaiting = this.#replica.onRevision(revision, () => {
        cancelLate()
        cancelTimeout()
        resolve()
      })
      const cancelTimeout = this.#clock.after(this.#options.requestTimeoutMs, () => {
        cancelLate()
        stopWaiting()
        this.#feed?.restart() // the watched member may hang
        reject(
          new StoreUnavailableError(`etcd revision ${this.#mapping.etcdRevisionOf(revision)} did not arrive in time`),
        )
      })
      let cancelLate = () => {}
      if (onLate) cancelLate = this.#clock.after(TICK_AFTER_MS, onLate)
    })
  }

  async #writeTick(): Promise<void> {
    const value = { key: this.#layout.tick, value: new Uint8Array(0) }
    await this.#client.txn({ success: [{ request: { case: 'requestPut', value } }] })
  }

  // Writing

  async #send(group: readonly ConditionalTransaction[]): Promise<readonly CommitResult[]> {
    try {
      const get = (key: string) => this.#replica.get(key)
      const context = {
        layout: this.#layout,
        mapping: this.#mapping,
        get,
        transformer: this.#transformer,
        hasChecksum: this.#hasChecksums,
      }
      const request = encodeGroup(group, context)
      const commits = decodeCommits(group, await this.#client.txn(request), this.#mapping)
      const lastCommitted = commits.findLast(({ isCommitted }) => isCommitted)
      // Ignore a timeout, because the writes are committed and reads wait for the replica themselves.
      if (lastCommitted) await this.#waitForRevision(lastCommitted.revision).catch(() => {})
      return commits
    } catch (error) {
      throw error instanceof EtcdRejectedError ? new WriteRejectedError(error.message, error) : error
    }
  }

  // Compaction and expiry

  #scheduleExpiry({ notBeforeMs = 0 } = {}): void {
    this.#cancelExpiry()
    if (this.#closedError || this.#isExpiring) return
    const nextMs = this.#replica.nextExpiryMs()
    if (nextMs === undefined) return
    const nowMs = this.#clock.nowMs()
    const delayMs = Math.max(0, Math.min(Math.max(nextMs, notBeforeMs) - nowMs, EXPIRE_CHECK_MS_MAX))
    this.#cancelExpiry = this.#clock.after(delayMs, () => void this.#expire())
  }

  /** Runs on every server. The first server that commits deletes an expired key. */
  async #expire(): Promise<void> {
    const expiredVersions = this.#replica.takeExpired({
      nowMs: this.#clock.nowMs(),
      max: this.#options.operationsMax,
    })
    let notBeforeMs = 0
    if (expiredVersions.length > 0) {
      this.#isExpiring = true
      try {
        await deleteExpired({ transact: (decide) => this.transact(decide) }, expiredVersions)
      } catch {
        this.#replica.restoreExpired(expiredVersions) // still due
        notBeforeMs = this.#clock.nowMs() + RETRY_MS
      }
      this.#isExpiring = false
    }
    this.#scheduleExpiry({ notBeforeMs })
  }

  #scheduleCompaction(): void {
    const { compactEveryMs } = this.#options
    if (compactEveryMs === 0 || this.#closedError) return
    this.#cancelCompaction = this.#clock.after(compactEveryMs, () => {
      void this.#compact().finally(() => this.#scheduleCompaction())
    })
  }

  /** Compacts etcd to the oldest revision that this server keeps. Runs on every server without coordination. */
  async #compact(): Promise<void> {
    const revision = this.#replica.oldestRevision
    try {
      if (revision > this.#compactedRevision) await this.#client.compact(this.#mapping.etcdRevisionOf(revision))
    } catch (error) {
      if (!(error instanceof EtcdRejectedError)) return // unavailable: retry at the next interval
    }
    this.#compactedRevision = revision // compacted by this or another server
    await this.#client.status().then(
      ({ dbSize }) => {
        this.#bytesOnDisk = Number(dbSize)
      },
      () => {},
    )
  }

  // Closing

  #checkOpen(): void {
    if (this.#closedError) throw this.#closedError
  }

  /** Closes the store, because the replica is no longer reliable. */
  #fail(detail: string, cause?: unknown): StoreClosedError {
    const error = new StoreClosedError(`the store is closed: ${detail}; reopen it`)
    error.cause = cause
    this.#closedError ??= error
    this.#closeRun ??= this.#close(error)
    return error
  }

  async #close(reason: StoreClosedError): Promise<void> {
    this.#closedError ??= reason
    this.#cancelExpiry()
    this.#cancelCompaction()
    await this.#transactor.idle()
    this.#feed?.stop()
    this.#replica.close(this.#closedError)
    this.#client.close()
  }
}

const encodeAbout = (format: number): Buffer => Buffer.from(JSON.stringify({ store: STORE, format }))

function parseAbout(about: KeyValue | undefined): { store?: unknown; format?: unknown } {
  try {
    return JSON.parse(Buffer.from(about?.value ?? []).toString()) ?? {}
  } catch {
    return {}
  }
}

const omitUndefined = <T extends object>(options: T): T =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
