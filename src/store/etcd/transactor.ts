// Transactor runs transactions on the replica and commits them to etcd with optimistic concurrency control: etcd compares
// the revisions of all keys that a transaction has read. Within this process, a transaction waits for keys that another one
// is writing (key-locks.ts), or continues its chain (chain.ts); after a conflict with another server, it runs again. The result
// of a transaction that writes nothing or throws is first confirmed against etcd, because the replica may be behind.
import {
  type Decide,
  type Entry,
  keyOfWrite,
  type Revision,
  StoreBusyError,
  type TransactionResult,
  type Write,
  WriteRejectedError,
} from '../store.ts'
import { Chain, type ChainLink } from './chain.ts'
import type { CommitResult, ConditionalTransaction } from './commit-queue.ts'
import { type DecidedWrites, type Decision, runDecision, type SettledDecision } from './decision.ts'
import { KeyLocks } from './key-locks.ts'

const PENDING_MAX = 100_000 // further transactions are rejected with StoreBusyError
const ATTEMPTS_MAX = 100 // after as many conflicts with other servers, a transaction fails with StoreBusyError

export interface TransactorOptions {
  readonly get: (key: string) => Entry | undefined
  readonly list: (prefix: string) => readonly Entry[]
  readonly revision: () => Revision
  /** Commits all writes or none. Called in the order in which transactions ran; every written key is among the reads. */
  readonly commit: (transaction: ConditionalTransaction) => Promise<CommitResult>
  /** etcd's --max-txn-ops. */
  readonly operationsMax: number
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
  /** Whether it may run on the uncommitted totals of a chain. */
  canContinue: boolean
  /** Whether other transactions may continue its chain. */
  canBeContinued: boolean
}

interface Link extends ChainLink {
  readonly transaction: Transaction
  readonly requestedWrites: readonly Write[]
}

export class Transactor {
  readonly #options: TransactorOptions
  readonly #locks = new KeyLocks<Chain<Link>>()
  readonly #unfinishedResults = new Set<Promise<unknown>>()

  constructor(options: TransactorOptions) {
    this.#options = options
  }

  transact(decide: Decide): Promise<TransactionResult> {
    if (this.#unfinishedResults.size >= PENDING_MAX)
      return Promise.reject(new StoreBusyError(this.#unfinishedResults.size))
    const result = new Promise<TransactionResult>((resolve, reject) => {
      const transaction = { decide, resolve, reject, attempts: 0, canContinue: true, canBeContinued: true }
      this.#attempt(transaction, { isFresh: false })
    })
    this.#unfinishedResults.add(result)
    const finish = () => void this.#unfinishedResults.delete(result)
    result.then(finish, finish)
    return result
  }

  /** Resolves after all accepted transactions have settled. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#unfinishedResults)
  }

  /** Runs a transaction. `isFresh` means that the replica was just refreshed, so the result needs no confirmation. */
  #attempt(transaction: Transaction, { isFresh }: { isFresh: boolean }): void {
    const decision = this.#decide(transaction)
    if (decision.is === 'busy') {
      if (decision.isUncommitted) transaction.canContinue = false // so that the next run waits for the totals
      this.#wait(transaction, decision.key)
    } else if (decision.is === 'decided' && decision.writes.length > 0) {
      this.#write(transaction, decision)
    } else if (isFresh) {
      this.#settle(transaction, decision)
    } else {
      void this.#confirm(transaction, decision)
    }
  }

  #wait(transaction: Transaction, key: string): void {
    this.#locks.wait(key, () => this.#attempt(transaction, { isFresh: false }))
  }

  #decide({ decide, canContinue }: Transaction): Decision<Link> {
    const { get, list } = this.#options
    return runDecision(decide, { get, list, holderOf: (key) => this.#locks.holderOf(key), canContinue })
  }

  /**
   * Adds the transaction to the chain whose totals it has read, or waits if the chain cannot take it. A transaction that has
   * read no uncommitted totals is committed in a new chain.
   */
  #write(transaction: Transaction, { requestedWrites, writes, reads, continuation }: DecidedWrites<Link>): void {
    const link = { transaction, requestedWrites, writes, reads }
    if (continuation) {
      if (continuation.chain.add(link)) this.#locks.hold(writes.map(keyOfWrite), continuation.chain)
      else this.#wait(transaction, continuation.key)
    } else {
      const { operationsMax } = this.#options
      const chain = new Chain<Link>(link, { operationsMax, isOpen: transaction.canBeContinued })
      this.#locks.hold(chain.keys, chain)
      void this.#commit(chain)
    }
  }

  async #commit(chain: Chain<Link>): Promise<void> {
    const retriedTransactions: Transaction[] = []
    try {
      const { isCommitted, revision } = await this.#options.commit(chain)
      if (isCommitted) {
        const revisions = chain.revisionsFrom(revision)
        for (const link of chain.links) link.transaction.resolve(resultOf(link, revisions))
        return
      }
      await this.#options.catchUp(revision)
      for (const { transaction } of chain.links) {
        if (++transaction.attempts < ATTEMPTS_MAX) retriedTransactions.push(transaction)
        else transaction.reject(new StoreBusyError(this.#unfinishedResults.size))
      }
    } catch (error) {
      const transactions = chain.links.map(({ transaction }) => transaction)
      if (!(error instanceof WriteRejectedError) || transactions.length === 1) {
        for (const { reject } of transactions) reject(error)
        return
      }
      // Perhaps only one of them exceeds a limit: each runs again in a separate chain.
      for (const transaction of transactions) retriedTransactions.push(Object.assign(transaction, NO_CHAINS))
    } finally {
      this.#locks.release(chain.keys)
    }
    for (const transaction of retriedTransactions) this.#attempt(transaction, { isFresh: false })
  }

  async #confirm(transaction: Transaction, decision: SettledDecision<Link>): Promise<void> {
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

  #settle(transaction: Transaction, decision: SettledDecision<Link>): void {
    if (decision.is === 'threw') transaction.reject(decision.error)
    else transaction.resolve({ revision: this.#options.revision(), revisions: decision.requestedWrites.map(() => 0) })
  }
}

/** `revisionsByKey` are the revisions of the chain; a total has that of its last write. */
function resultOf({ requestedWrites, writes }: Link, revisionsByKey: ReadonlyMap<string, Revision>): TransactionResult {
  const writtenSet = new Set(writes)
  const revisions = requestedWrites.map((write) =>
    writtenSet.has(write) ? (revisionsByKey.get(keyOfWrite(write)) ?? 0) : 0,
  )
  return { revision: Math.max(...revisions), revisions }
}

const NO_CHAINS = { canContinue: false, canBeContinued: false }
