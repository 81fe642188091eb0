// A store on etcd, which several API servers can share. Writes are etcd transactions (transactor.ts), sent in groups
// (commit-queue.ts, group.ts); reads and watches are answered by a replica in memory (replica.ts) that follows etcd (feed.ts). Before a read of the newest state, etcd
// is asked which revision that is, and the replica must have come that far: so what one server has acknowledged, every
// server shows.
//
// etcd's compaction knows no prefixes: `brief` history is short in the replica, and comes back when a store is opened.
// Compaction concerns all of an etcd cluster, so the cluster should be Stowage's own, or compacted by somebody else.
import type { Clock } from '../../base/clock.ts'
import { deleteExpired } from '../expiry.ts'
import {
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
  type Transacted,
  type Watch,
  type WatchOptions,
  WriteRefusedError,
} from '../store.ts'
import { EtcdClient, EtcdRefusedError, type EtcdTls } from './client.ts'
import { type Commit, CommitQueue, type Member } from './commit-queue.ts'
import { type Feed, type FeedChange, startFeed } from './feed.ts'
import { Compare_CompareTarget, type KeyValue } from './gen/etcd_pb.js'
import { groupCommits, groupRequest, lastRevisionIn, readChanges, readValue } from './group.ts'
import { ABOUT, type Layout, layoutOf } from './layout.ts'
import { Numbering } from './numbering.ts'
import { createPulse } from './pulse.ts'
import { type Change, Replica } from './replica.ts'
import { sharedRun } from './shared-run.ts'
import { Transactor } from './transactor.ts'

const PREFIX = '/stowage'
const REQUEST_TIMEOUT_MS = 5_000
const COMPACT_EVERY_MS = 5 * 60_000
const TRANSACTION_WRITES_MAX = 128 // etcd's default of --max-txn-ops
const REPLAY_REVISIONS_MAX = 200_000 // older history is not read when a store is opened
const SNAPSHOT_PAGE_KEYS = 2_000
const TICK_AFTER_MS = 25 // the replica is late: perhaps the revision belongs to somebody else's keys
const EXPIRE_LOOK_MS_MAX = 10_000 // the clock may jump: look at least this often
const RETRY_MS = 1_000 // after an expiry or a reload that failed

export interface EtcdStoreOptions {
  /** `HOST:PORT` of each member. */
  readonly endpoints: readonly string[]
  /** Everything is kept below it. Default `/stowage`. */
  readonly prefix?: string
  /** Default: no encryption. */
  readonly tls?: EtcdTls
  readonly clock: Clock
  readonly history?: HistoryOptions
  /** How long a call of etcd may take before it counts as unavailable. Default 5 seconds. */
  readonly requestTimeoutMs?: number
  /** How often etcd is told to forget what `history` no longer keeps. 0: never, etcd does it itself. Default 5 minutes. */
  readonly compactEveryMs?: number
  /** How many writes etcd takes at once (--max-txn-ops): expired keys are deleted by so many. Default 128. */
  readonly transactionWritesMax?: number
}

export class EtcdStore implements Store {
  readonly #options: Required<Omit<EtcdStoreOptions, 'tls'>>
  readonly #clock: Clock
  readonly #client: EtcdClient
  readonly #layout: Layout
  readonly #replica: Replica
  readonly #transactor: Transactor
  readonly #pulse: () => Promise<string | undefined>
  readonly #newestRevision = sharedRun(() => this.#askNewestRevision())
  readonly #tick = sharedRun(() => this.#writeTick())
  readonly #commits: CommitQueue
  #numbering = new Numbering({ base: 0 })
  #feed: Feed | undefined
  #bytesOnDisk = 0
  #cancelExpiry = () => {}
  #isExpiring = false
  #cancelCompaction = () => {}
  #compactedRevision: Revision = 0
  /** Why no call is served any more. */
  #closedBecause: StoreClosedError | undefined
  #closing: Promise<void> | undefined

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

  private constructor({ tls, ...options }: EtcdStoreOptions) {
    this.#options = {
      prefix: PREFIX,
      history: {},
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      compactEveryMs: COMPACT_EVERY_MS,
      transactionWritesMax: TRANSACTION_WRITES_MAX,
      ...definedOf(options),
    }
    const { endpoints, clock, history, requestTimeoutMs } = this.#options
    this.#clock = clock
    this.#client = new EtcdClient({ endpoints, tls, clock, requestTimeoutMs })
    this.#layout = layoutOf(this.#options.prefix)
    this.#pulse = createPulse({ clock, look: () => this.#look(), silence: 'it does not answer' })
    this.#replica = new Replica({ clock, history })
    this.#commits = new CommitQueue({
      clock,
      waitMsMax: requestTimeoutMs,
      send: (group) => this.#send(group),
      operationsMax: this.#options.transactionWritesMax,
    })
    this.#transactor = new Transactor({
      get: (key) => this.#replica.get(key),
      list: (prefix) => this.#replica.list({ prefix }).entries,
      revision: () => this.#replica.revision,
      commit: (member) => this.#commits.commit(member),
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
    return this.#replica.list(options)
  }

  transact(decide: Decide): Promise<Transacted> {
    if (this.#closedBecause) return Promise.reject(this.#closedBecause)
    return this.#transactor.transact(decide)
  }

  watch(options: WatchOptions): Watch {
    this.#checkOpen()
    return this.#replica.watch(options)
  }

  stats(): StoreStats {
    const { keys, revision, compactedRevision, historyEntries, watchers } = this.#replica
    return { keys, revision, compactedRevision, historyEntries, bytesOnDisk: this.#bytesOnDisk, watchers }
  }

  async problem(): Promise<string | undefined> {
    return this.#closedBecause ? 'the store has ended' : this.#pulse()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close(new StoreClosedError())
    return this.#closing
  }

  // Opening

  async #start(): Promise<void> {
    this.#numbering = await this.#findOrCreate()
    await this.#catchUp(await this.#synchronize())
    this.#bytesOnDisk = Number((await this.#client.status()).dbSize)
    this.#scheduleExpiry()
    this.#scheduleCompaction()
  }

  /** Answers how revisions are numbered since this store was created, which may be now. */
  async #findOrCreate(): Promise<Numbering> {
    const key = this.#layout.about
    const { header, succeeded, responses } = await this.#client.txn({
      compare: [{ key, target: Compare_CompareTarget.CREATE, targetUnion: { case: 'createRevision', value: 0n } }],
      success: [{ request: { case: 'requestPut', value: { key, value: Buffer.from(JSON.stringify(ABOUT)) } } }],
      failure: [{ request: { case: 'requestRange', value: { key } } }],
    })
    if (succeeded) return new Numbering({ base: Number(header?.revision) })
    const found = responses[0]?.response
    const about = found?.case === 'responseRange' ? found.value.kvs[0] : undefined
    const { store, format } = parseAbout(about)
    const where = `etcd at ${this.#options.endpoints.join(',')} under ${this.#options.prefix}`
    if (!about || store !== ABOUT.store) throw new Error(`${where} is not a Stowage store`)
    if (format !== ABOUT.format) {
      throw new Error(`${where} is a store of format ${format}; this version of Stowage reads format ${ABOUT.format}`)
    }
    return new Numbering({ base: Number(about.createRevision) })
  }

  /**
   * Reads the state at the oldest revision that is kept, and follows etcd from there, so that all kept history passes
   * through the replica. Answers the newest revision.
   */
  async #synchronize(): Promise<Revision> {
    for (;;) {
      const newest = await this.#askNewestRevision()
      const oldest = this.#numbering.etcdRevisionOf(0)
      const wanted = Math.max(oldest, this.#numbering.etcdRevisionOf(newest) - REPLAY_REVISIONS_MAX)
      const from = Math.max(wanted, await this.#compactedAfter(wanted))
      try {
        const group = await this.#client.range({ key: this.#layout.group, revision: BigInt(from) })
        const state = await this.#stateAt(from)
        this.#replica.load(state, lastRevisionIn(from, group.kvs[0], this.#numbering))
      } catch (error) {
        if (error instanceof EtcdRefusedError && error.isCompacted) continue // compacted meanwhile: begin later
        throw error
      }
      this.#feed = startFeed({
        client: this.#client,
        clock: this.#clock,
        span: this.#layout.all,
        afterRevision: from,
        onChanges: (changes) => this.#apply(changes),
        onCompacted: () => void this.#reload(),
      })
      return newest
    }
  }

  /** The revision etcd is compacted to, if that is after this one; 0 otherwise. Only a watch is told the number. */
  async #compactedAfter(revision: number): Promise<number> {
    try {
      await this.#client.range({ key: this.#layout.about, countOnly: true, revision: BigInt(revision) })
      return 0
    } catch (error) {
      if (!(error instanceof EtcdRefusedError) || !error.isCompacted) throw error
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
          onEnd: (because) => reject(new StoreUnavailableError(`etcd does not answer: ${because}`)),
        },
      )
    })
  }

  async #stateAt(revision: number): Promise<Change[]> {
    const { start, end } = this.#layout.keys
    const state: Change[] = []
    for (let from: Uint8Array = start; ; ) {
      const { kvs, more } = await this.#client.range({
        key: from,
        rangeEnd: end,
        limit: BigInt(SNAPSHOT_PAGE_KEYS),
        revision: BigInt(revision),
      })
      for (const kv of kvs) state.push(readValue(kv, this.#layout.storeKey(kv.key) as string, this.#numbering))
      const last = kvs.at(-1)
      if (!more || !last) return state
      from = Buffer.concat([last.key, Buffer.of(0)])
    }
  }

  /** etcd was compacted past the replica, after a long silence: watchers end, and everything is read again. */
  async #reload(): Promise<void> {
    while (!this.#closedBecause) {
      try {
        await this.#synchronize()
        this.#scheduleExpiry()
        return
      } catch {
        await this.#clock.sleep(RETRY_MS) // meanwhile calls fail with StoreUnavailableError
      }
    }
  }

  // Following

  #apply(events: readonly FeedChange[]): void {
    try {
      const { changes, revision } = readChanges(events, { layout: this.#layout, numbering: this.#numbering })
      this.#replica.apply(changes, revision)
    } catch (error) {
      this.#break(`what etcd holds under ${this.#options.prefix} cannot be read`, error)
    }
    this.#scheduleExpiry()
  }

  /** Settles once the replica shows everything that was written before the call, on any server. */
  async #refresh(): Promise<void> {
    await this.#catchUp(await this.#newestRevision())
  }

  /** Answers the first of the store's revisions in etcd's newest: the replica takes all of them at once. */
  async #askNewestRevision(): Promise<Revision> {
    const known = this.#numbering.etcdRevisionOf(this.#replica.revision)
    const { header } = await this.#client.range({ key: this.#layout.about, countOnly: true })
    const newest = Number(header?.revision)
    if (newest < known) throw this.#break(`etcd has gone back from revision ${known} to ${newest}`)
    return this.#numbering.revisionOf(newest)
  }

  /** A read that its members agree on: one that is cut off from the others does not answer it. */
  async #look(): Promise<undefined> {
    await this.#client.range({ key: this.#layout.about, countOnly: true })
    return undefined
  }

  /**
   * Waits for the replica. A revision that was made by somebody else's keys never comes through our feed; a write of
   * our own after it does, and proves that nothing of ours is missing.
   */
  #catchUp(revision: Revision): Promise<void> {
    return this.#reach(revision, { onLate: () => void this.#tick().catch(() => {}) })
  }

  #reach(revision: Revision, { onLate }: { onLate?: () => void } = {}): Promise<void> {
    if (revision <= this.#replica.revision) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const stopWaiting = this.#replica.reach(revision, () => {
        cancelLate()
        cancelTimeout()
        resolve()
      })
      const cancelTimeout = this.#clock.after(this.#options.requestTimeoutMs, () => {
        cancelLate()
        stopWaiting()
        this.#feed?.renew() // the member it follows may hang
        reject(
          new StoreUnavailableError(`revision ${this.#numbering.etcdRevisionOf(revision)} of etcd has not arrived`),
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

  async #send(group: readonly Member[]): Promise<readonly Commit[]> {
    try {
      const get = (key: string) => this.#replica.get(key)
      const request = groupRequest(group, { layout: this.#layout, numbering: this.#numbering, get })
      const commits = groupCommits(group, await this.#client.txn(request), this.#numbering)
      const done = commits.findLast(({ isDone }) => isDone)
      // If it does not arrive in time it is written all the same; reads wait for it.
      if (done) await this.#reach(done.revision).catch(() => {})
      return commits
    } catch (error) {
      throw error instanceof EtcdRefusedError ? new WriteRefusedError(error.message, error) : error
    }
  }

  // Forgetting

  #scheduleExpiry({ notBeforeMs = 0 } = {}): void {
    this.#cancelExpiry()
    if (this.#closedBecause || this.#isExpiring) return
    const nextMs = this.#replica.nextExpiryMs()
    if (nextMs === undefined) return
    const nowMs = this.#clock.nowMs()
    const delayMs = Math.max(0, Math.min(Math.max(nextMs, notBeforeMs) - nowMs, EXPIRE_LOOK_MS_MAX))
    this.#cancelExpiry = this.#clock.after(delayMs, () => void this.#expire())
  }

  /** Every server does this; whoever is first deletes, the others find nothing left to do. */
  async #expire(): Promise<void> {
    const due = this.#replica.takeExpired({ nowMs: this.#clock.nowMs(), max: this.#options.transactionWritesMax })
    let notBeforeMs = 0
    if (due.length > 0) {
      this.#isExpiring = true
      try {
        await deleteExpired({ transact: (decide) => this.transact(decide) }, due)
      } catch {
        this.#replica.giveBackExpired(due) // still due
        notBeforeMs = this.#clock.nowMs() + RETRY_MS
      }
      this.#isExpiring = false
    }
    this.#scheduleExpiry({ notBeforeMs })
  }

  #scheduleCompaction(): void {
    const { compactEveryMs } = this.#options
    if (compactEveryMs === 0 || this.#closedBecause) return
    this.#cancelCompaction = this.#clock.after(compactEveryMs, () => {
      void this.#compact().finally(() => this.#scheduleCompaction())
    })
  }

  /** Every server does this, up to what it has itself seen to be old enough: no agreement is needed. */
  async #compact(): Promise<void> {
    const revision = this.#replica.oldestRevision
    try {
      if (revision > this.#compactedRevision) await this.#client.compact(this.#numbering.etcdRevisionOf(revision))
    } catch (error) {
      if (!(error instanceof EtcdRefusedError)) return // unavailable: next time
    }
    this.#compactedRevision = revision // by us, or by another server before us
    await this.#client.status().then(
      ({ dbSize }) => {
        this.#bytesOnDisk = Number(dbSize)
      },
      () => {},
    )
  }

  // Ending

  #checkOpen(): void {
    if (this.#closedBecause) throw this.#closedBecause
  }

  /** Nothing that this process believes can be relied on any more. */
  #break(because: string, cause?: unknown): StoreClosedError {
    const reason = new StoreClosedError(`the store has ended: ${because}; open it again`)
    reason.cause = cause
    this.#closedBecause ??= reason
    this.#closing ??= this.#close(reason)
    return reason
  }

  async #close(reason: StoreClosedError): Promise<void> {
    this.#closedBecause ??= reason
    this.#cancelExpiry()
    this.#cancelCompaction()
    await this.#transactor.idle()
    this.#feed?.stop()
    this.#replica.close(this.#closedBecause)
    this.#client.close()
  }
}

function parseAbout(about: KeyValue | undefined): { store?: unknown; format?: unknown } {
  try {
    return JSON.parse(Buffer.from(about?.value ?? []).toString()) ?? {}
  } catch {
    return {}
  }
}

const definedOf = <T extends object>(options: T): T =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
