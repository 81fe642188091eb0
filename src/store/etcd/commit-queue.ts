// Group commit on etcd: sends pending transactions together in one call, which is one entry of etcd's log. A transaction is
// sent immediately if fewer than CALLS_MAX calls are in flight, and otherwise with the next group. Groups keep the order of
// commit() calls. If etcd rejects a group, each of its transactions is sent in its own call.
import type { Clock } from '../../base/clock.ts'
import { keyOfWrite, type Revision, StoreUnavailableError, type Write, WriteRejectedError } from '../store.ts'
import { SUB_REVISIONS } from './revision-mapping.ts'

export const GROUP_TRANSACTIONS_MAX = 100 // below etcd's default limit of 128 operations, to leave room for larger transactions
const GROUP_BYTES_MAX = 1024 * 1024 // etcd's default limit is 1.5 MiB (--max-request-bytes)
const GROUP_OPERATIONS = 2 // operations of a group in addition to those of its transactions
const CALLS_MAX = 2 // etcd syncs one group to disk while it receives the next

/** A transaction that etcd commits only if every read key still has the same revision. Revision 0 means that the key is absent. */
export interface ConditionalTransaction {
  readonly reads: ReadonlyMap<string, Revision>
  readonly writes: readonly Write[]
  /** Called before the transaction is sent. Until then its reads and writes may grow, while fitsGroup() is true. */
  onSend?(): void
}

export interface CommitResult {
  readonly isCommitted: boolean
  /** The revision of the first write if committed, otherwise the revision of the conflict. */
  readonly revision: Revision
}

export interface CommitQueueOptions {
  /** Resolves with one result per transaction. Rejects with WriteRejectedError if none of them was written. */
  readonly send: (group: readonly ConditionalTransaction[]) => Promise<readonly CommitResult[]>
  /** etcd's --max-txn-ops. A group uses one operation per transaction, plus those of the largest transaction. */
  readonly operationsMax: number
  readonly clock: Clock
  /** A transaction that has waited longer is rejected unsent, because its caller has probably timed out. */
  readonly waitMsMax: number
}

interface WaitingTransaction {
  readonly transaction: ConditionalTransaction
  readonly sinceMs: number
  readonly resolve: (commit: CommitResult) => void
  readonly reject: (error: unknown) => void
}

export class CommitQueue {
  readonly #options: CommitQueueOptions
  #waitingTransactions: WaitingTransaction[] = []
  #calls = 0
  #isSendScheduled = false

  constructor(options: CommitQueueOptions) {
    this.#options = options
  }

  commit(transaction: ConditionalTransaction): Promise<CommitResult> {
    const writeCount = transaction.writes.length
    if (writeCount > SUB_REVISIONS) {
      const message = `a transaction may hold at most ${SUB_REVISIONS} writes; this one has ${writeCount}`
      return Promise.reject(new WriteRejectedError(message))
    }
    return new Promise((resolve, reject) => {
      this.#waitingTransactions.push({ transaction, sinceMs: this.#options.clock.monotonicMs(), resolve, reject })
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
    while (this.#waitingTransactions.length > 0 && this.#calls < CALLS_MAX) {
      const group = this.#waitingTransactions.splice(
        0,
        countFittingTransactions(this.#waitingTransactions, this.#options.operationsMax),
      )
      this.#calls++
      for (const { transaction } of group) transaction.onSend?.()
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
    while (this.#waitingTransactions[0] && isLate(this.#waitingTransactions[0])) {
      this.#waitingTransactions
        .shift()
        ?.reject(new StoreUnavailableError('etcd is too slow: the transaction was not sent in time'))
    }
  }

  async #send(group: readonly WaitingTransaction[]): Promise<void> {
    try {
      const commits = await this.#options.send(group.map(({ transaction }) => transaction))
      for (const [index, { resolve }] of group.entries()) resolve(commits[index] as CommitResult)
    } catch (error) {
      if (error instanceof WriteRejectedError && group.length > 1) {
        await Promise.all(group.map((waitingTransaction) => this.#send([waitingTransaction]))) // perhaps only one of them exceeds a limit
      } else {
        for (const { reject } of group) reject(error)
      }
    }
  }
}

/**
 * Returns how many of the first transactions fit into one group, at least one. A transaction that reads a key which an earlier
 * one writes belongs to the next group, because etcd evaluates all comparisons of a group first.
 */
function countFittingTransactions(waitingTransactions: readonly WaitingTransaction[], operationsMax: number): number {
  const writtenKeys = new Set<string>()
  let count = 0
  let operations = 0
  let subRevisions = 0
  let bytes = 0
  for (const { transaction } of waitingTransactions) {
    if (count >= GROUP_TRANSACTIONS_MAX) break
    const { reads, writes } = transaction
    operations = Math.max(operations, operationsOf(transaction))
    subRevisions += writes.length
    bytes += bytesOf(transaction)
    const exceedsLimit =
      count + GROUP_OPERATIONS + operations > operationsMax || subRevisions > SUB_REVISIONS || bytes > GROUP_BYTES_MAX
    if (count > 0 && (exceedsLimit || hasAny(reads, writtenKeys))) break
    for (const write of writes) writtenKeys.add(keyOfWrite(write))
    count++
  }
  return count
}

function hasAny(reads: ReadonlyMap<string, Revision>, keys: ReadonlySet<string>): boolean {
  for (const key of reads.keys()) if (keys.has(key)) return true
  return false
}

/** Whether etcd accepts the transaction in its own group. */
export const fitsGroup = (transaction: ConditionalTransaction, operationsMax: number): boolean =>
  GROUP_OPERATIONS + operationsOf(transaction) <= operationsMax &&
  transaction.writes.length <= SUB_REVISIONS &&
  bytesOf(transaction) <= GROUP_BYTES_MAX

const operationsOf = ({ reads, writes }: ConditionalTransaction) => Math.max(reads.size, writes.length + 1)

function bytesOf({ reads, writes }: ConditionalTransaction): number {
  let bytes = 0
  for (const key of reads.keys()) bytes += 2 * key.length // a key is compared and written; every written key is among the reads
  for (const write of writes) if ('put' in write && !write.isCoalescable) bytes += write.value.length
  return bytes
}
