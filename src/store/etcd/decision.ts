// Runs the `decide` function of a transaction on the replica, and records what it reads. A key that another transaction of this
// process is writing makes the decision busy, unless it is a total of a chain that the transaction may continue (chain.ts).
import { checkWrites } from '../batch.ts'
import { type Decide, type Entry, keyOfWrite, type Revision, type Write } from '../store.ts'
import type { Chain, ChainLink } from './chain.ts'

export type Decision<Link extends ChainLink> = BusyDecision | SettledDecision<Link>

interface BusyDecision {
  readonly is: 'busy'
  /** The key whose release the transaction waits for. */
  readonly key: string
  /** Whether `decide` threw or returned no writes after it had read uncommitted totals, which may not commit. */
  readonly isUncommitted: boolean
}

export type SettledDecision<Link extends ChainLink> =
  | { readonly is: 'threw'; readonly error: unknown; readonly reads: Reads }
  | DecidedWrites<Link>

export interface DecidedWrites<Link extends ChainLink> {
  readonly is: 'decided'
  /** The writes that `decide` returned. */
  readonly requestedWrites: readonly Write[]
  /** `requestedWrites` without deletes of keys that do not exist. */
  readonly writes: readonly Write[]
  /** The keys that were read from the replica, with their revisions. */
  readonly reads: Reads
  /** The chain whose uncommitted totals were read, and one of their keys. */
  readonly continuation: { readonly chain: Chain<Link>; readonly key: string } | undefined
}

export type Reads = Map<string, Revision>

export interface DecisionContext<Link extends ChainLink> {
  readonly get: (key: string) => Entry | undefined
  readonly list: (prefix: string) => readonly Entry[]
  /** Returns the chain that is writing the key. */
  readonly holderOf: (key: string) => Chain<Link> | undefined
  /** Whether the transaction may read uncommitted totals. */
  readonly canContinue: boolean
}

export function runDecision<Link extends ChainLink>(decide: Decide, context: DecisionContext<Link>): Decision<Link> {
  const run = new DecisionRun(context)
  let decision: SettledDecision<Link>
  try {
    decision = run.writesOf(decide)
  } catch (error) {
    decision = { is: 'threw', error, reads: run.reads }
  }
  if (run.busyKey !== undefined) return { is: 'busy', key: run.busyKey, isUncommitted: false }
  const hasWrites = decision.is === 'decided' && decision.writes.length > 0
  if (run.continuation && !hasWrites) return { is: 'busy', key: run.continuation.key, isUncommitted: true }
  return decision
}

/** The view of one run of `decide`. */
class DecisionRun<Link extends ChainLink> {
  readonly reads: Reads = new Map()
  busyKey: string | undefined
  continuation: DecidedWrites<Link>['continuation']
  readonly #context: DecisionContext<Link>
  readonly #listedPrefixes: string[] = []

  constructor(context: DecisionContext<Link>) {
    this.#context = context
  }

  writesOf(decide: Decide): DecidedWrites<Link> {
    const requestedWrites = decide({ get: (key) => this.#get(key), list: (prefix) => this.#list(prefix) })
    checkWrites(requestedWrites)
    const blockedWrite = requestedWrites.find((write) => this.#isBlocked(write))
    if (blockedWrite) throw this.#busy(keyOfWrite(blockedWrite))
    const writes = requestedWrites.filter((write) => this.#get(keyOfWrite(write)) !== undefined || 'put' in write)
    const { reads, continuation } = this
    return { is: 'decided', requestedWrites, writes, reads, continuation }
  }

  #get(key: string): Entry | undefined {
    const entry = this.#context.get(key)
    if (this.#context.holderOf(key)) {
      const chain = this.#continue(key)
      if (!chain) throw this.#busy(key)
      return chain.entryOf(key, entry)
    }
    this.reads.set(key, entry?.modRevision ?? 0)
    return entry
  }

  #list(prefix: string): readonly Entry[] {
    const entries = this.#context.list(prefix)
    if (!this.continuation) entries.some(({ key }) => this.#continue(key))
    if (this.continuation) return this.continuation.chain.listWithWrites(prefix, entries)
    this.#listedPrefixes.push(prefix)
    return entries
  }

  /** Returns the chain that is writing the key, if the transaction may read its uncommitted total. */
  #continue(key: string): Chain<Link> | undefined {
    const chain = this.#context.holderOf(key)
    if (!this.#context.canContinue || !chain?.canContinue(key)) return undefined
    if (this.continuation) return this.continuation.chain === chain ? chain : undefined
    // Earlier lists of this run lack the writes of the chain.
    if (this.#listedPrefixes.some((prefix) => chain.writesBelow(prefix))) return undefined
    this.continuation = { chain, key }
    return chain
  }

  /** Whether another transaction is writing the key, unless this one rewrites a total of the chain that it continues. */
  #isBlocked(write: Write): boolean {
    const chain = this.#context.holderOf(keyOfWrite(write))
    if (!chain) return false
    const isTotal = 'put' in write && write.isCoalescable === true
    return !isTotal || chain !== this.continuation?.chain || !chain.canContinue(write.put)
  }

  #busy(key: string): Error {
    this.busyKey = key
    return KEY_BUSY
  }
}

/** Thrown when `decide` reads or writes a key that another transaction is writing. `decide` runs again after that write. */
const KEY_BUSY = new Error('the key is being written')
