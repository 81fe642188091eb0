// Group commit on etcd: sends pending transactions together in one call, which is one entry of etcd's log. A transaction is
// sent immediately if fewer than CALLS_MAX calls are in flight, and otherwise with the next group. Groups keep the order of
// commit() calls. If etcd rejects a group, each of its transactions is sent in a call of its own.
import type { Clock } from '../../base/clock.ts'
import { type Revision, StoreUnavailableError, type Write, WriteRejectedError } from '../store.ts'
import { SUB_REVISIONS } from './revision-mapping.ts'

export const GROUP_TRANSACTIONS_MAX = 100 // below etcd's default limit of 128 operations, to leave room for larger transactions
const GROUP_BYTES_MAX = 1024 * 1024 // etcd's default limit is 1.5 MiB (--max-request-bytes)
const CALLS_MAX = 2 // etcd syncs one group to disk while it receives the next

/** Writes that etcd performs only if every read key still has the same revision. Revision 0 means that the key is absent. */
export interface ConditionalWrite {
  readonly reads: ReadonlyMap<string, Revision>
  readonly writes: readonly Write[]
}

export interface CommitResult {
  readonly committed: boolean
  /** The revision of the first write if committed, otherwise the revision of the conflict. */
  readonly revision: Revision
}

export interface CommitQueueOptions {
  /** Resolves with one result per transaction. Rejects with WriteRejectedError if none of them was written. */
  readonly send: (group: readonly ConditionalWrite[]) => Promise<readonly CommitResult[]>
  /** etcd's --max-txn-ops. A group uses one operation per transaction, plus those of the largest transaction. */
  readonly operationsMax: number
  readonly clock: Clock
  /** A transaction that has waited longer is rejected unsent, because its caller has probably timed out. */
  readonly waitMsMax: number
}

interface WaitingTransaction extends ConditionalWrite {
  readonly sinceMs: number
  readonly resolve: (commit: CommitResult) => void
  readonly reject: (error: unknown) => void
}

export class CommitQueue {
  readonly #options: CommitQueueOptions
  #waiting: WaitingTransaction[] = []
  #calls = 0
  #isSendScheduled = false

  constructor(options: CommitQueueOptions) {
    this.#options = options
  }

  commit({ reads, writes }: ConditionalWrite): Promise<CommitResult> {
    if (writes.length > SUB_REVISIONS) {
      const message = `a transaction may hold at most ${SUB_REVISIONS} writes; this one has ${writes.length}`
      return Promise.reject(new WriteRejectedError(message))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ reads, writes, sinceMs: this.#options.clock.monotonicMs(), resolve, reject })
      if (this.#isSendScheduled || this.#calls >= CALLS_MAX) return
      this.#isSendScheduled = true
      queueMicrotask(() => {
        this.#isSendScheduled = false // calls of commit() in the same turn form one group
        this.#sendNext()
      })
    })
  }

  #sendNext(): void {
    this.#rejectLate()
    while (this.#waiting.length > 0 && this.#calls < CALLS_MAX) {
      const group = this.#waiting.splice(0, countFitting(this.#waiting, this.#options.operationsMax))
      this.#calls++
      void this.#send(group).finally(() => {
        this.#calls--
        this.#sendNext()
      })
    }
  }

  #rejectLate(): void {
    const { clock, waitMsMax } = this.#options
    const nowMs = clock.monotonicMs()
    const isLate = ({ sinceMs }: WaitingTransaction) => nowMs - sinceMs > waitMsMax
    while (this.#waiting[0] && isLate(this.#waiting[0])) {
      this.#waiting.shift()?.reject(new StoreUnavailableError('etcd is too slow: the write was not sent in time'))
    }
  }

  async #send(group: readonly WaitingTransaction[]): Promise<void> {
    try {
      const commits = await this.#options.send(group)
      for (const [index, { resolve }] of group.entries()) resolve(commits[index] as CommitResult)
    } catch (error) {
      if (error instanceof WriteRejectedError && group.length > 1) {
        await Promise.all(group.map((transaction) => this.#send([transaction]))) // perhaps only one of them exceeds a limit
      } else {
        for (const { reject } of group) reject(error)
      }
    }
  }
}

/** Returns how many of the first transactions fit into one group, at least one. */
function countFitting(waiting: readonly ConditionalWrite[], operationsMax: number): number {
  let count = 0
  let operations = 0
  let subRevisions = 0
  let bytes = 0
  for (const transaction of waiting) {
    if (count >= GROUP_TRANSACTIONS_MAX) break
    operations = Math.max(operations, operationsOf(transaction))
    subRevisions += transaction.writes.length
    bytes += bytesOf(transaction)
    const exceedsLimit =
      count + 2 + operations > operationsMax || subRevisions > SUB_REVISIONS || bytes > GROUP_BYTES_MAX
    if (exceedsLimit && count > 0) break
    count++
  }
  return count
}

const operationsOf = ({ reads, writes }: ConditionalWrite) => Math.max(reads.size, writes.length + 1)

function bytesOf({ reads, writes }: ConditionalWrite): number {
  let bytes = 0
  for (const key of reads.keys()) bytes += 2 * key.length // a key is compared and written; every written key is among the reads
  for (const write of writes) if ('put' in write) bytes += write.value.length
  return bytes
}
