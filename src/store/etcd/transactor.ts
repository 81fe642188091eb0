// Runs transactions against the replica and commits them in etcd, which checks that what they read is still so.
// Transactions on different keys run side by side. Those of this process that touch a key being written wait for it
// (key-locks.ts); one of another server that was faster makes etcd refuse ours, which is then decided again.
// A decision that writes nothing, or refuses, counts only if it was made on what etcd says now: the replica may be late.
import { checkWrites } from '../batch.ts'
import {
  type Decide,
  type Entry,
  keyOfWrite,
  type Revision,
  StoreBusyError,
  type Transacted,
  type TransactionView,
  type Write,
} from '../store.ts'
import type { Commit, Member } from './commit-queue.ts'
import { KeyLocks } from './key-locks.ts'

const WAITING_MAX = 100_000 // more unfinished transactions are refused with StoreBusyError
const ATTEMPTS_MAX = 100 // lost races against other servers; each means that another one has won

export interface TransactorOptions {
  readonly get: (key: string) => Entry | undefined
  readonly list: (prefix: string) => readonly Entry[]
  readonly revision: () => Revision
  /** All or nothing. Called in the order in which transactions are decided; every key written is among those read. */
  readonly commit: (member: Member) => Promise<Commit>
  /** Settles once `get` shows everything that was written before the call, on any server. */
  readonly refresh: () => Promise<void>
  /** Settles once `get` shows that revision. */
  readonly catchUp: (revision: Revision) => Promise<void>
}

interface Transaction {
  readonly decide: Decide
  readonly resolve: (result: Transacted) => void
  readonly reject: (error: unknown) => void
  attempts: number
}

type Decision =
  | { readonly is: 'busy'; readonly key: string }
  | { readonly is: 'refused'; readonly error: unknown; readonly reads: Reads }
  | Made

interface Made {
  readonly is: 'made'
  /** As they were decided, and without the deletes that find nothing. */
  readonly chosen: readonly Write[]
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

  transact(decide: Decide): Promise<Transacted> {
    if (this.#unfinished.size >= WAITING_MAX) return Promise.reject(new StoreBusyError(this.#unfinished.size))
    const done = new Promise<Transacted>((resolve, reject) => {
      this.#attempt({ decide, resolve, reject, attempts: 0 }, { isFresh: false })
    })
    this.#unfinished.add(done)
    const finish = () => void this.#unfinished.delete(done)
    done.then(finish, finish)
    return done
  }

  /** Settles when everything accepted so far has ended. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#unfinished)
  }

  /** isFresh: nothing has been waited for since the replica was refreshed. */
  #attempt(transaction: Transaction, { isFresh }: { isFresh: boolean }): void {
    const decision = this.#decide(transaction.decide)
    if (decision.is === 'busy') {
      this.#locks.wait(decision.key, () => this.#attempt(transaction, { isFresh: false }))
    } else if (decision.is === 'made' && decision.writes.length > 0) {
      void this.#commit(transaction, decision)
    } else if (isFresh) {
      this.#settle(transaction, decision)
    } else {
      void this.#confirm(transaction, decision)
    }
  }

  #decide(decide: Decide): Decision {
    const reads: Reads = new Map()
    let busy: string | undefined
    const read = (key: string): Entry | undefined => {
      if (this.#locks.isHeld(key)) {
        busy = key
        throw KEY_BUSY
      }
      const entry = this.#options.get(key)
      reads.set(key, entry?.modRevision ?? 0)
      return entry
    }
    const view: TransactionView = { get: read, list: this.#options.list }
    try {
      const chosen = decide(view)
      checkWrites(chosen)
      busy ??= chosen.map(keyOfWrite).find((key) => this.#locks.isHeld(key))
      if (busy !== undefined) return { is: 'busy', key: busy }
      const writes = chosen.filter((write) => read(keyOfWrite(write)) !== undefined || 'put' in write)
      return { is: 'made', chosen, writes, reads }
    } catch (error) {
      return busy === undefined ? { is: 'refused', error, reads } : { is: 'busy', key: busy }
    }
  }

  async #commit(transaction: Transaction, { chosen, writes, reads }: Made): Promise<void> {
    const keys = writes.map(keyOfWrite)
    this.#locks.hold(keys)
    try {
      const { isDone, revision } = await this.#options.commit({ reads, writes })
      if (isDone) return transaction.resolve(transacted(revision, chosen, writes))
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
    const isStillSo = [...decision.reads].every(
      ([key, revision]) => (this.#options.get(key)?.modRevision ?? 0) === revision,
    )
    if (isStillSo) this.#settle(transaction, decision)
    else this.#attempt(transaction, { isFresh: true })
  }

  #settle(transaction: Transaction, decision: Exclude<Decision, { is: 'busy' }>): void {
    if (decision.is === 'refused') transaction.reject(decision.error)
    else transaction.resolve({ revision: this.#options.revision(), revisions: decision.chosen.map(() => 0) })
  }
}

/** `first` is the revision of the first of `writes`, which are those of `chosen` that change something. */
function transacted(first: Revision, chosen: readonly Write[], writes: readonly Write[]): Transacted {
  let done = 0
  const revisions = chosen.map((write) => (write === writes[done] ? first + done++ : 0))
  return { revision: first + writes.length - 1, revisions }
}

/** Leaves `decide` when it asks for a key that is being written; it is run again later. */
const KEY_BUSY = new Error('the key is being written')
