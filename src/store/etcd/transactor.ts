// Transactor runs transactions on the replica and commits them to etcd with optimistic concurrency control: etcd compares
// the revisions of all keys that a transaction has read. Within this process, a transaction waits for keys that another one
// is writing (key-locks.ts); after a conflict with another server, it runs again. The result of a transaction that writes
// nothing or throws is first confirmed against etcd, because the replica may be behind.
import { checkWrites } from '../batch.ts'
import {
  type Decide,
  type Entry,
  keyOfWrite,
  type Revision,
  StoreBusyError,
  type TransactionResult,
  type TransactionView,
  type Write,
} from '../store.ts'
import type { CommitResult, ConditionalWrite } from './commit-queue.ts'
import { KeyLocks } from './key-locks.ts'

const PENDING_MAX = 100_000 // further transactions are rejected with StoreBusyError
const ATTEMPTS_MAX = 100 // conflicts with other servers

export interface TransactorOptions {
  readonly get: (key: string) => Entry | undefined
  readonly list: (prefix: string) => readonly Entry[]
  readonly revision: () => Revision
  /** Commits all writes or none. Called in the order in which transactions ran; every written key is among the reads. */
  readonly commit: (write: ConditionalWrite) => Promise<CommitResult>
  /** Resolves after `get` returns all writes that any server made before the call. */
  readonly refresh: () => Promise<void>
  /** Resolves after `get` returns the state at the revision. */
  readonly catchUp: (revision: Revision) => Promise<void>
}

interface Transaction {
  readonly decide: Decide
  readonly resolve: (result: TransactionResult) => void
  readonly reject: (error: unknown) => void
  attempts: number
}

type Decision =
  | { readonly is: 'busy'; readonly key: string }
  | { readonly is: 'threw'; readonly error: unknown; readonly reads: Reads }
  | DecidedWrites

interface DecidedWrites {
  readonly is: 'decided'
  /** The writes that `decide` returned. */
  readonly requested: readonly Write[]
  /** `requested` without deletes of keys that do not exist. */
  readonly writes: readonly Write[]
  readonly reads: Reads
}

type Reads = Map<string, Revision>

export class Transactor {
  readonly #options: TransactorOptions
  readonly #locks = new KeyLocks()
  readonly #unfinished = new Set<Promise<unknown>>()

  constructor(options: TransactorOptions) {
    this.#options = options
  }

  transact(decide: Decide): Promise<TransactionResult> {
    if (this.#unfinished.size >= PENDING_MAX) return Promise.reject(new StoreBusyError(this.#unfinished.size))
    const result = new Promise<TransactionResult>((resolve, reject) => {
      this.#attempt({ decide, resolve, reject, attempts: 0 }, { isFresh: false })
    })
    this.#unfinished.add(result)
    const finish = () => void this.#unfinished.delete(result)
    result.then(finish, finish)
    return result
  }

  /** Resolves after all accepted transactions have settled. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#unfinished)
  }

  /** Runs a transaction. `isFresh` means that the replica was just refreshed, so the result needs no confirmation. */
  #attempt(transaction: Transaction, { isFresh }: { isFresh: boolean }): void {
    const decision = this.#decide(transaction.decide)
    if (decision.is === 'busy') {
      this.#locks.wait(decision.key, () => this.#attempt(transaction, { isFresh: false }))
    } else if (decision.is === 'decided' && decision.writes.length > 0) {
      void this.#commit(transaction, decision)
    } else if (isFresh) {
      this.#settle(transaction, decision)
    } else {
      void this.#confirm(transaction, decision)
    }
  }

  #decide(decide: Decide): Decision {
    const reads: Reads = new Map()
    let busyKey: string | undefined
    const readKey = (key: string): Entry | undefined => {
      if (this.#locks.isHeld(key)) {
        busyKey = key
        throw KEY_BUSY
      }
      const entry = this.#options.get(key)
      reads.set(key, entry?.modRevision ?? 0)
      return entry
    }
    const view: TransactionView = { get: readKey, list: this.#options.list }
    try {
      const requested = decide(view)
      checkWrites(requested)
      busyKey ??= requested.map(keyOfWrite).find((key) => this.#locks.isHeld(key))
      if (busyKey !== undefined) return { is: 'busy', key: busyKey }
      const writes = requested.filter((write) => readKey(keyOfWrite(write)) !== undefined || 'put' in write)
      return { is: 'decided', requested, writes, reads }
    } catch (error) {
      return busyKey === undefined ? { is: 'threw', error, reads } : { is: 'busy', key: busyKey }
    }
  }

  async #commit(transaction: Transaction, { requested, writes, reads }: DecidedWrites): Promise<void> {
    const keys = writes.map(keyOfWrite)
    this.#locks.hold(keys)
    try {
      const { committed, revision } = await this.#options.commit({ reads, writes })
      if (committed) return transaction.resolve(resultOf(revision, requested, writes))
      if (++transaction.attempts >= ATTEMPTS_MAX) throw new StoreBusyError(this.#unfinished.size)
      await this.#options.catchUp(revision)
    } catch (error) {
      return transaction.reject(error)
    } finally {
      this.#locks.release(keys)
    }
    this.#attempt(transaction, { isFresh: false })
  }

  async #confirm(transaction: Transaction, decision: Exclude<Decision, { is: 'busy' }>): Promise<void> {
    try {
      await this.#options.refresh()
    } catch (error) {
      return transaction.reject(error)
    }
    const isUnchanged = [...decision.reads].every(
      ([key, revision]) => (this.#options.get(key)?.modRevision ?? 0) === revision,
    )
    if (isUnchanged) this.#settle(transaction, decision)
    else this.#attempt(transaction, { isFresh: true })
  }

  #settle(transaction: Transaction, decision: Exclude<Decision, { is: 'busy' }>): void {
    if (decision.is === 'threw') transaction.reject(decision.error)
    else transaction.resolve({ revision: this.#options.revision(), revisions: decision.requested.map(() => 0) })
  }
}

/** `firstRevision` is the revision of the first of `writes`; the others are consecutive. */
function resultOf(firstRevision: Revision, requested: readonly Write[], writes: readonly Write[]): TransactionResult {
  let index = 0
  const revisions = requested.map((write) => (write === writes[index] ? firstRevision + index++ : 0))
  return { revision: firstRevision + writes.length - 1, revisions }
}

/** Thrown to abort `decide` when it reads a key that is being written. `decide` runs again after that write. */
const KEY_BUSY = new Error('the key is being written')
