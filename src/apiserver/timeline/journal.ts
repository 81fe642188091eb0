// The journal of volumes: each transaction that changes a claim, a volume, an attachment or a pod with claims also puts the
// records of its changes, so that a change and its record are committed together or not at all. Attempts and driver calls
// wait in memory for the next such transaction; a crash loses those that wait.
//
// Records are written in chunks. On a store with group commits, the first transaction of a group puts a chunk, and the others
// add their records to it before the store reads its value. Servers that share a store put a chunk per transaction, because
// they must not write the same key. merge-chunks.ts merges chunks into segments and bounds the journal; read-timeline.ts reads
// both.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { bytesOfText } from '../../base/unpooled-bytes.ts'
import type { Put, TransactionView, Write } from '../../store/index.ts'
import type { WritePlan, WriteTarget } from '../objects/write-verb.ts'
import { type DescribedChange, describeChange, isJournaledKind, type ObjectChange } from './describe-change.ts'
import { createStepFollower, type StepChange, type StepFollower } from './follow-steps.ts'
import { CHUNKS_PREFIX, RECORD_AGE_MS_MAX } from './journal-keys.ts'
import { type ActivityRecord, lineOfActivity, ownerOf } from './journal-record.ts'
import { UnmergedChunks } from './unmerged-chunks.ts'

export interface JournalOptions {
  readonly clock: Clock
  readonly random: Random
  /** Whether several servers write to the store. */
  readonly isShared: boolean
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
  /** The attempts and calls that are not written yet. */
  readonly pending: readonly ActivityRecord[]
  readonly stats: JournalStats
  /** The steps of the claims whose changes are committed. */
  readonly steps: StepFollower
  /** The chunks that are committed and not merged. Undefined if several servers write to the store. */
  readonly unmergedChunks: UnmergedChunks | undefined
}

export interface JournalStats {
  readonly changes: number
  readonly activities: number
  /** Attempts and calls that were dropped, because too many waited for a transaction. */
  readonly droppedActivities: number
}

/** Beyond this number of attempts and calls that wait for a transaction, the oldest are dropped. */
export const PENDING_ACTIVITIES_MAX = 5_000
/** A chunk with more records is followed by another one. */
const CHUNK_RECORDS_MAX = 1_000
/**
 * A transaction with more writes has a separate chunk, because the store may reject it as too large after its records were
 * added to the chunk of other transactions.
 */
const SHARED_CHUNK_WRITES_MAX = 16

export function createJournal({ clock, random, isShared }: JournalOptions): Journal {
  const start = `${clock.nowMs().toString(36)}${Math.floor(random() * 36 ** 4)
    .toString(36)
    .padStart(4, '0')}`
  const steps = createStepFollower()
  const unmergedChunks = isShared ? undefined : new UnmergedChunks()
  const stats = { changes: 0, activities: 0, droppedActivities: 0 }
  let pending: ActivityRecord[] = []
  let chunkCount = 0
  /** The chunk of the current group commit, until it is full. */
  let sharedChunk: Chunk | undefined

  function createChunk(atMs: number): Chunk {
    const key = `${CHUNKS_PREFIX}${start}${(chunkCount++).toString(36).padStart(8, '0')}`
    return new Chunk(key, atMs + RECORD_AGE_MS_MAX)
  }

  /** Returns the chunk that a transaction of the same group commit has put, if another transaction may add records to it. */
  function findSharedChunk(view: TransactionView, writes: readonly Write[]): Chunk | undefined {
    if (!sharedChunk || sharedChunk.encoded || sharedChunk.count >= CHUNK_RECORDS_MAX) return undefined
    if (writes.length > SHARED_CHUNK_WRITES_MAX) return undefined
    return view.get(sharedChunk.put)?.coalescablePut === sharedChunk ? sharedChunk : undefined
  }

  function dropOldest(): void {
    const excess = pending.length - PENDING_ACTIVITIES_MAX
    if (excess <= 0) return
    pending = pending.slice(excess)
    stats.droppedActivities += excess
  }

  class Transaction implements JournalTransaction {
    /** The chunk that this transaction has put. */
    #chunk: Chunk | undefined

    withRecords(view: TransactionView, writes: readonly Write[], planned: readonly PlannedChange[]): readonly Write[] {
      this.#forgetChunk()
      if (writes.length === 0) return writes
      const atMs = clock.nowMs()
      const changes = describeChanges(planned, atMs)
      if (changes.length === 0 && pending.length === 0) return writes
      const chunk = findSharedChunk(view, writes) ?? this.#beginChunk(writes, atMs)
      if (pending.length > 0) {
        chunk.addActivities(pending)
        pending = []
      }
      chunk.addChanges(changes)
      return chunk === this.#chunk ? [...writes, chunk] : writes
    }

    #beginChunk(writes: readonly Write[], atMs: number): Chunk {
      this.#chunk = createChunk(atMs)
      if (!isShared && writes.length <= SHARED_CHUNK_WRITES_MAX) sharedChunk = this.#chunk
      return this.#chunk
    }

    /** The transactions of a group commit are all committed or all rejected, so the one that has put the chunk settles it. */
    settle(isCommitted: boolean): void {
      const chunk = this.#chunk
      if (!chunk) return
      if (!isCommitted) {
        this.#forgetChunk()
        return
      }
      stats.changes += chunk.count - chunk.activities.length
      stats.activities += chunk.activities.length
      steps.addChanges(chunk.stepChanges)
      if (chunk.encoded) unmergedChunks?.add(chunk.put, chunk.encoded, chunk.owners)
    }

    /** After a rejected commit, the activities wait for the next transaction. */
    #forgetChunk(): void {
      if (!this.#chunk) return
      pending = [...this.#chunk.activities, ...pending]
      dropOldest()
      this.#chunk = undefined
    }
  }

  return {
    begin: () => new Transaction(),
    addActivities(process, activities) {
      for (const activity of activities) {
        pending.push({ process, activity })
        steps.addActivity(activity)
      }
      dropOldest()
    },
    get pending() {
      return pending
    },
    stats,
    steps,
    unmergedChunks,
  }
}

/** Describes several writes of one object in a transaction as one change, except for its removal. */
function describeChanges(planned: readonly PlannedChange[], atMs: number): readonly DescribedChange[] {
  if (planned.length === 1) {
    const { target, plan } = planned[0]!
    const described = isChanged(planned[0]!) && describeChange(target, plan.change!, atMs)
    return described ? [described] : NO_CHANGES
  }
  const changes = planned.filter((write) => isChanged(write) && isJournaledKind(write.target.resource.kind))
  const latest = new Map<string, { target: WriteTarget; change: ObjectChange }>()
  const merged: { target: WriteTarget; change: ObjectChange }[] = []
  for (const { target, plan } of changes) {
    const change = plan.change!
    const uid = (change.after ?? change.before)?.metadata.uid ?? ''
    const earlier = latest.get(uid)
    if (earlier && change.after && earlier.target.fieldManager === target.fieldManager) {
      earlier.change = { before: earlier.change.before, after: change.after }
      continue
    }
    const entry = { target, change }
    latest.set(uid, entry)
    merged.push(entry)
  }
  return merged.flatMap(({ target, change }) => describeChange(target, change, atMs) ?? [])
}

const NO_CHANGES: readonly DescribedChange[] = []

const isChanged = ({ plan }: PlannedChange): boolean => plan.change !== undefined && plan.writes.length > 0

/** The put of a chunk. Its records are encoded when the store writes the group commit. */
class Chunk implements Put {
  /** The value is read when the group commit is written, so that other transactions can add records until then. */
  readonly isCoalescable = true
  readonly isCreationCoalescable = true
  readonly put: string
  readonly expiresAtMs: number
  readonly activities: ActivityRecord[] = []
  readonly stepChanges: StepChange[] = []
  /** The owner of each record. */
  readonly owners: string[] = []
  /** The value, if the store has read it. */
  encoded: Uint8Array | undefined
  #lines = ''

  constructor(put: string, expiresAtMs: number) {
    this.put = put
    this.expiresAtMs = expiresAtMs
  }

  get count(): number {
    return this.owners.length
  }

  addActivities(records: readonly ActivityRecord[]): void {
    for (const record of records) {
      this.activities.push(record)
      this.owners.push(ownerOf(record))
      this.#lines += `${lineOfActivity(record)}\n`
    }
  }

  addChanges(changes: readonly DescribedChange[]): void {
    for (const { line, owner, stepChange } of changes) {
      if (stepChange) this.stepChanges.push(stepChange)
      this.owners.push(owner)
      this.#lines += `${line}\n`
    }
  }

  get value(): Uint8Array {
    this.encoded ??= bytesOfText(this.#lines)
    return this.encoded
  }
}
