// The journal of volumes: each transaction that changes a claim, a volume, an attachment or a pod with claims also puts the
// records of its changes, so that a change and its record are committed together or not at all. Attempts and driver calls
// wait in memory for the next transaction that writes an object of any kind; a crash loses those that wait.
//
// Records are written in chunks. On a store with group commits, the first transaction of a group puts a chunk, and the others
// add their records to it before the store reads its value. Servers that share a store put a chunk per transaction, because
// they must not write the same key. merge-chunks.ts merges chunks into segments and bounds the journal; read-timeline.ts reads
// both.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Put, TransactionView, Write } from '../../store/index.ts'
import type { WritePlan, WriteTarget } from '../objects/write-verb.ts'
import { ChunkEncoder } from './chunk-encoder.ts'
import { isRecorded, type ObjectChange } from './describe-change.ts'
import { createStepFollower, type StepChange, type StepFollower } from './follow-steps.ts'
import { CHUNKS_PREFIX, RECORD_AGE_MS_MAX } from './journal-keys.ts'
import { type ActivityRecord, ownerOf } from './journal-record.ts'
import { UnmergedChunks } from './unmerged-chunks.ts'

export interface JournalOptions {
  readonly clock: Clock
  readonly random: Random
  /** Whether several servers write to the store. */
  readonly isStoreShared: boolean
}

/** The records of one transaction, whose decision may run more than once. */
export interface JournalTransaction {
  /** Returns the writes with the put of their records. Without writes, there are no records. */
  withRecords(view: TransactionView, writes: readonly Write[], changes: readonly PlannedChange[]): readonly Write[]
  /** Must be called when the transaction has settled. */
  settle(isCommitted: boolean): void
}

export interface PlannedChange {
  readonly target: WriteTarget
  readonly plan: WritePlan
}

export interface Journal {
  begin(): JournalTransaction
  /** Adds attempts and calls of a process to the next transaction. */
  addActivities(process: string, activities: readonly Activity[]): void
  /** Adds the activities of components in this process. Returns a function that stops the recording. */
  recordActivitiesOf(source: ActivitySource): () => void
  /** The attempts and calls that are not written yet. */
  readonly pending: readonly ActivityRecord[]
  readonly stats: JournalStats
  /** The steps of the claims whose changes are committed. */
  readonly steps: StepFollower
  /** The chunks that are committed but not merged. Undefined if several servers write to the store. */
  readonly unmergedChunks: UnmergedChunks | undefined
}

/** The components of a process, which report their attempts and calls. */
interface ActivitySource {
  readonly process: string
  subscribeActivities(listener: (activity: Activity, startMs: number) => void): () => void
}

export interface JournalStats {
  readonly changes: number
  readonly activities: number
  /** Attempts and calls that were dropped, because too many waited for a transaction. */
  readonly droppedActivities: number
  readonly chunks: number
  /** Bytes of the committed chunks. */
  readonly bytes: number
}

/** Beyond this number of attempts and calls that wait for a transaction, the oldest are dropped. */
export const PENDING_ACTIVITIES_MAX = 5_000
/** A chunk with more records is followed by another one. */
const CHUNK_RECORDS_MAX = 1_000
/** The records of a shared chunk are encoded when there are this many. */
const ENCODED_RECORDS = 8
/**
 * A transaction with more writes has a separate chunk, because the store may reject it as too large after its records were
 * added to the chunk of other transactions.
 */
const SHARED_CHUNK_WRITES_MAX = 16

export function createJournal({ clock, random, isStoreShared }: JournalOptions): Journal {
  const start = `${clock.nowMs().toString(36)}${Math.floor(random() * 36 ** 4)
    .toString(36)
    .padStart(4, '0')}`
  const steps = createStepFollower()
  const unmergedChunks = isStoreShared ? undefined : new UnmergedChunks()
  const chunkDeps: ChunkDeps = { clock, encoder: new ChunkEncoder(), unmergedChunks }
  const sharedChunkDeps: ChunkDeps = { ...chunkDeps, encoder: new ChunkEncoder() }
  const stats = { changes: 0, activities: 0, droppedActivities: 0, chunks: 0, bytes: 0 }
  let pending: ActivityRecord[] = []
  let chunkCount = 0
  /** The chunk of the current group commit, until it is full. */
  let sharedChunk: Chunk | undefined

  function createChunk(isShared: boolean): Chunk {
    const key = `${CHUNKS_PREFIX}${start}${(chunkCount++).toString(36).padStart(8, '0')}`
    if (!isShared) return new Chunk(key, chunkDeps, Number.POSITIVE_INFINITY)
    sharedChunk?.end()
    sharedChunk = new Chunk(key, sharedChunkDeps, ENCODED_RECORDS)
    return sharedChunk
  }

  /** Returns the chunk that a transaction of the same group commit has put, if another transaction may add records to it. */
  function findSharedChunk(view: TransactionView, writes: readonly Write[]): Chunk | undefined {
    if (!sharedChunk || sharedChunk.isEncoded || sharedChunk.count >= CHUNK_RECORDS_MAX) return undefined
    if (writes.length > SHARED_CHUNK_WRITES_MAX) return undefined
    // All transactions of a group commit have the same view. Its first lookup shows that the store has accepted the put.
    if (sharedChunk.view === view) return sharedChunk
    if (view.get(sharedChunk.put)?.coalescablePut !== sharedChunk) return undefined
    sharedChunk.view = view
    return sharedChunk
  }

  function dropOldest(): void {
    const excessCount = pending.length - PENDING_ACTIVITIES_MAX
    if (excessCount <= 0) return
    pending = pending.slice(excessCount)
    stats.droppedActivities += excessCount
  }

  class Transaction implements JournalTransaction {
    /** The chunk that this transaction has put. */
    #chunk: Chunk | undefined

    withRecords(view: TransactionView, writes: readonly Write[], planned: readonly PlannedChange[]): readonly Write[] {
      this.#forgetChunk()
      if (writes.length === 0) return writes
      const openChunk = findSharedChunk(view, writes)
      if (!openChunk && pending.length === 0 && !areRecorded(planned)) return writes
      const chunk = openChunk ?? this.#beginChunk(writes)
      if (pending.length > 0) {
        chunk.addActivities(pending)
        pending = []
      }
      chunk.addChanges(planned)
      return openChunk ? writes : [...writes, chunk]
    }

    #beginChunk(writes: readonly Write[]): Chunk {
      this.#chunk = createChunk(!isStoreShared && writes.length <= SHARED_CHUNK_WRITES_MAX)
      return this.#chunk
    }

    /** The transactions of a group commit are all committed or all rejected, so the one that has put the chunk settles it. */
    settle(isCommitted: boolean): void {
      const chunk = this.#chunk
      if (!chunk) return
      if (sharedChunk === chunk) {
        chunk.end()
        sharedChunk = undefined
      }
      if (!isCommitted) {
        this.#forgetChunk()
        return
      }
      const { put, value, activities, changeCount, stepChanges } = chunk
      stats.changes += changeCount
      stats.activities += activities.length
      stats.chunks++
      stats.bytes += value.length
      steps.addChanges(stepChanges)
      unmergedChunks?.add(put, value)
    }

    /** After a rejected commit, the activities wait for the next transaction. */
    #forgetChunk(): void {
      if (!this.#chunk) return
      pending = [...this.#chunk.activities, ...pending]
      dropOldest()
      this.#chunk = undefined
    }
  }

  function addActivity(record: ActivityRecord): void {
    pending.push(record)
    steps.addActivity(record.activity)
    if (pending.length > PENDING_ACTIVITIES_MAX) dropOldest()
  }

  return {
    begin: () => new Transaction(),
    addActivities(process, activities) {
      for (const activity of activities) addActivity({ process, activity })
    },
    recordActivitiesOf: ({ process, subscribeActivities }) =>
      subscribeActivities((activity, startMs) => addActivity({ process, activity, startMs })),
    get pending() {
      return pending
    },
    stats,
    steps,
    unmergedChunks,
  }
}

/** Returns whether at least one of the changes has a record. */
function areRecorded(planned: readonly PlannedChange[]): boolean {
  for (const change of planned) if (recordedChangeOf(change)) return true
  return false
}

/** Returns undefined if the write has no record. */
function recordedChangeOf({ target, plan: { change, writes } }: PlannedChange): ObjectChange | undefined {
  return change && writes.length > 0 && isRecorded(target.resource.kind, change) ? change : undefined
}

/** A recorded change of an object, from before its first write to after the last one. */
class RecordedChange implements ObjectChange {
  target: WriteTarget
  uid: string
  before: ObjectChange['before']
  after: ObjectChange['after']

  constructor(target: WriteTarget, uid: string, { before, after }: ObjectChange) {
    this.target = target
    this.uid = uid
    this.before = before
    this.after = after
  }
}

/** Merges several writes of one object by one field manager into one change, except for its removal. */
function mergeChanges(planned: readonly PlannedChange[]): readonly RecordedChange[] {
  const merged: RecordedChange[] = []
  const latest = planned.length > SEARCHED_CHANGES_MAX ? new Map<string, RecordedChange>() : undefined
  for (const plannedChange of planned) {
    const change = recordedChangeOf(plannedChange)
    if (!change) continue
    const { target } = plannedChange
    const uid = uidOf(change)
    const earlier = latest ? latest.get(uid) : findLatest(merged, uid)
    if (earlier && change.after && earlier.target.fieldManager === target.fieldManager) {
      earlier.after = change.after
      continue
    }
    const recorded = new RecordedChange(target, uid, change)
    latest?.set(uid, recorded)
    merged.push(recorded)
  }
  return merged
}

/** In a commit with more writes, the earlier write of an object is found with a Map. */
const SEARCHED_CHANGES_MAX = 16

function findLatest(merged: readonly RecordedChange[], uid: string): RecordedChange | undefined {
  for (let index = merged.length - 1; index >= 0; index--) if (merged[index]!.uid === uid) return merged[index]
  return undefined
}

const uidOf = ({ before, after }: ObjectChange): string => (after ?? before)?.metadata.uid ?? ''

interface ChunkDeps {
  readonly clock: Clock
  readonly encoder: ChunkEncoder
  readonly unmergedChunks: UnmergedChunks | undefined
}

/**
 * The put of a chunk. Records are described and encoded a few at a time, which takes less time than between the plans of two
 * transactions, and less than together when the store writes the group commit, when their objects are no longer in the processor's
 * cache. The objects of a change must not change until then.
 */
class Chunk implements Put {
  /** The value is read when the group commit is written, so that other transactions can add records until then. */
  readonly isCoalescable = true
  readonly isCreationCoalescable = true
  readonly put: string
  readonly expiresAtMs: number
  activities: ActivityRecord[] = []
  /** The number of encoded changes. */
  changeCount = 0
  readonly stepChanges: StepChange[] = []
  /** The number of records, or more. */
  count = 0
  /** The view of the group commit that contains this chunk, once it is known. */
  view: TransactionView | undefined
  readonly #deps: ChunkDeps
  /** The number of records that are encoded together. */
  readonly #encodedRecords: number
  #encodedCount = 0
  #encodedActivities = 0
  /** The changes of each transaction that are not encoded yet, with those that have no record. */
  readonly #transactions: (readonly PlannedChange[])[] = []
  #value: Uint8Array | undefined

  constructor(put: string, deps: ChunkDeps, encodedRecords: number) {
    this.put = put
    this.expiresAtMs = deps.clock.nowMs() + RECORD_AGE_MS_MAX
    this.#deps = deps
    this.#encodedRecords = encodedRecords
  }

  /** Whether the store has read the value, so that no more records can be added. */
  get isEncoded(): boolean {
    return this.#value !== undefined
  }

  /** Keeps the array of the first records, and adds further ones to it. */
  addActivities(records: ActivityRecord[]): void {
    if (this.activities.length === 0) this.activities = records
    else for (const record of records) this.activities.push(record)
    this.count += records.length
  }

  addChanges(planned: readonly PlannedChange[]): void {
    this.#transactions.push(planned)
    this.count += planned.length
    if (this.count - this.#encodedCount >= this.#encodedRecords) this.#encode()
  }

  get value(): Uint8Array {
    return this.end()
  }

  /** Encodes the remaining records. */
  end(): Uint8Array {
    if (!this.#value) {
      this.#encode()
      this.#value = this.#deps.encoder.end()
    }
    return this.#value
  }

  #encode(): void {
    const { clock, encoder, unmergedChunks } = this.#deps
    this.#encodedCount = this.count
    encoder.setTime(clock.nowMs())
    for (; this.#encodedActivities < this.activities.length; this.#encodedActivities++) {
      const record = this.activities[this.#encodedActivities]!
      encoder.addActivity(record)
      unmergedChunks?.countRecord(ownerOf(record))
    }
    for (const planned of this.#transactions) {
      if (planned.length === 1) {
        const change = recordedChangeOf(planned[0]!)
        if (change) this.#addChange(planned[0]!.target, change)
      } else for (const change of mergeChanges(planned)) this.#addChange(change.target, change)
      encoder.endTransaction()
    }
    this.#transactions.length = 0
  }

  #addChange(target: WriteTarget, change: ObjectChange): void {
    const { encoder, unmergedChunks } = this.#deps
    const stepChange = encoder.addChange(target, change)
    if (stepChange) this.stepChanges.push(stepChange)
    unmergedChunks?.countRecord(uidOf(change))
    this.changeCount++
  }
}
