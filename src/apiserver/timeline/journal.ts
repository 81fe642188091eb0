// The journal of volumes: each transaction that changes a claim, a volume, an attachment or a pod with claims also puts the
// records of its changes, so that a change and its record are committed together or not at all. Attempts and driver calls
// wait in memory for the next such transaction; a crash loses those that wait.
//
// Records are written in chunks. On a store with group commits, all transactions of a group share one chunk, because its
// put is coalescable. Servers that share a store put a chunk per transaction, because they must not write the same key.
// merge-chunks.ts merges chunks into segments and bounds the journal; read-timeline.ts reads both.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Put, TransactionView, Write } from '../../store/index.ts'
import type { WritePlan, WriteTarget } from '../objects/write-verb.ts'
import { describeChange } from './describe-change.ts'
import { createStepFollower, type StepFollower } from './follow-steps.ts'
import { CHUNKS_PREFIX, RECORD_AGE_MS_MAX } from './journal-keys.ts'
import { type ActivityRecord, type ChangeRecord, encodeRecords, type JournalRecord, ownerOf } from './journal-record.ts'
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

export function createJournal({ clock, random, isShared }: JournalOptions): Journal {
  const start = `${clock.nowMs().toString(36)}${Math.floor(random() * 36 ** 4)
    .toString(36)
    .padStart(4, '0')}`
  const steps = createStepFollower()
  const unmergedChunks = isShared ? undefined : new UnmergedChunks()
  const stats = { changes: 0, activities: 0, droppedActivities: 0 }
  let pending: ActivityRecord[] = []
  let chunkCount = 0

  const keyOf = (count: number) => `${CHUNKS_PREFIX}${start}${count.toString(36).padStart(8, '0')}`

  /** Returns the put that adds the records to the chunk of the group commit, or that starts a new chunk. */
  function putOf(view: TransactionView, records: readonly JournalRecord[], expiresAtMs: number): ChunkPut {
    if (isShared) return new ChunkPut(keyOf(chunkCount++), records, undefined, expiresAtMs)
    for (;;) {
      const key = keyOf(chunkCount)
      const entry = view.get(key)
      if (!entry) return new ChunkPut(key, records, undefined, expiresAtMs)
      const previous = entry.coalescablePut
      if (previous instanceof ChunkPut && previous.count < CHUNK_RECORDS_MAX)
        return new ChunkPut(key, records, previous, expiresAtMs)
      chunkCount++ // the chunk is committed or full
    }
  }

  return {
    begin() {
      let activities: ActivityRecord[] | undefined
      let changes: ChangeRecord[] = []
      let put: ChunkPut | undefined
      return {
        withRecords(view, writes, planned) {
          changes = []
          put = undefined
          if (writes.length === 0) return writes
          const atMs = clock.nowMs()
          for (const { target, plan } of planned) {
            const change = plan.writes.length > 0 && plan.change ? describeChange(target, plan.change, atMs) : undefined
            if (change) changes.push(change)
          }
          if (!activities && pending.length > 0) {
            activities = pending
            pending = []
          }
          if (changes.length === 0 && !activities) return writes
          const records = activities ? [...activities, ...changes] : changes
          put = putOf(view, records, atMs + RECORD_AGE_MS_MAX)
          return [...writes, put]
        },
        settle(isCommitted) {
          if (isCommitted) {
            stats.changes += changes.length
            stats.activities += activities?.length ?? 0
            steps.addChanges(changes)
            // Of the puts of a group commit, the store has encoded the last one, which has the records of all.
            if (put?.encoded) unmergedChunks?.add(put.put, put.encoded, put.owners())
          } else if (activities) {
            pending = [...activities, ...pending]
            dropOldest()
          }
          activities = undefined
          put = undefined
        },
      }
    },
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

  function dropOldest(): void {
    const excess = pending.length - PENDING_ACTIVITIES_MAX
    if (excess <= 0) return
    pending = pending.slice(excess)
    stats.droppedActivities += excess
  }
}

/** Encodes its records and those of the puts that it supersedes when the group commit is written. */
class ChunkPut implements Put {
  readonly isCoalescable = true
  readonly isCreationCoalescable = true
  readonly put: string
  readonly expiresAtMs: number
  readonly count: number
  readonly #records: readonly JournalRecord[]
  readonly #previous: ChunkPut | undefined

  constructor(put: string, records: readonly JournalRecord[], previous: ChunkPut | undefined, expiresAtMs: number) {
    this.put = put
    this.expiresAtMs = expiresAtMs
    this.count = records.length + (previous?.count ?? 0)
    this.#records = records
    this.#previous = previous
  }

  /** The value, if the store has read it. */
  encoded: Uint8Array | undefined

  get value(): Uint8Array {
    this.encoded ??= encodeRecords(this.#allRecords())
    return this.encoded
  }

  *owners(): Generator<string> {
    for (const record of this.#allRecords()) yield ownerOf(record)
  }

  #allRecords(): readonly JournalRecord[] {
    if (!this.#previous) return this.#records
    const recordLists: (readonly JournalRecord[])[] = []
    for (let chunk: ChunkPut | undefined = this; chunk; chunk = chunk.#previous) recordLists.push(chunk.#records)
    return recordLists.reverse().flat()
  }
}
