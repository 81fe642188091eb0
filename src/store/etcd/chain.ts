// Chain: transactions that commit together in one etcd transaction. Usually a chain has one transaction. Another transaction
// continues a chain that is not sent yet if it reads and rewrites a coalescable total that the chain writes, such as the usage
// of a quota: it runs on the uncommitted total, and only the last total is stored.
import { entryOfPut } from '../put-entry.ts'
import { type Entry, keyOfWrite, type Put, type Revision, type Write } from '../store.ts'
import { type ConditionalTransaction, fitsGroup } from './commit-queue.ts'

/** The keys that a transaction of a chain has read from etcd, with their revisions, and its writes. */
export interface ChainLink {
  readonly reads: ReadonlyMap<string, Revision>
  readonly writes: readonly Write[]
}

export interface ChainOptions {
  /** etcd's --max-txn-ops. */
  readonly operationsMax: number
  /** Whether other transactions may continue the chain. */
  readonly isOpen: boolean
}

export class Chain<Link extends ChainLink> implements ConditionalTransaction {
  readonly links: Link[] = []
  readonly #operationsMax: number
  readonly #reads = new Map<string, Revision>()
  /** The last write of each key, in the order of their revisions. */
  readonly #writes = new Map<string, Write>()
  #isOpen: boolean

  constructor(firstLink: Link, { operationsMax, isOpen }: ChainOptions) {
    this.#operationsMax = operationsMax
    this.#isOpen = isOpen
    this.#append(firstLink)
  }

  get reads(): ReadonlyMap<string, Revision> {
    return this.#reads
  }

  get writes(): readonly Write[] {
    return [...this.#writes.values()]
  }

  get keys(): readonly string[] {
    return [...this.#writes.keys()]
  }

  onSend(): void {
    this.#isOpen = false
  }

  /** Whether another transaction may read the uncommitted value of the key and rewrite it in this chain. */
  canContinue(key: string): boolean {
    return this.#isOpen && this.#totalOf(key) !== undefined
  }

  writesBelow(prefix: string): boolean {
    for (const key of this.#writes.keys()) if (key.startsWith(prefix)) return true
    return false
  }

  /**
   * Returns the uncommitted entry of a written key; its revision is 0. `committedEntry` is the entry that it replaces.
   */
  entryOf(key: string, committedEntry: Entry | undefined): Entry | undefined {
    const write = this.#writes.get(key)
    return write && 'put' in write ? entryOfPut(write, 0, committedEntry?.createRevision ?? 0) : undefined
  }

  /** Returns the entries below a prefix with the uncommitted writes of this chain, in key order. */
  listWithWrites(prefix: string, committedEntries: readonly Entry[]): readonly Entry[] {
    const entries = new Map(committedEntries.map((entry) => [entry.key, entry]))
    for (const key of this.#writes.keys()) {
      if (!key.startsWith(prefix)) continue
      const entry = this.entryOf(key, entries.get(key))
      if (entry) entries.set(key, entry)
      else entries.delete(key)
    }
    return [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /**
   * Adds a transaction that has read uncommitted totals of this chain. Returns false if the chain was sent, if etcd would
   * reject its size, or if the transaction and the chain have read different revisions of a key and cannot both commit.
   */
  add(link: Link): boolean {
    const isSameRevision = ([key, revision]: [string, Revision]) => (this.#reads.get(key) ?? revision) === revision
    if (!this.#isOpen || ![...link.reads].every(isSameRevision)) return false
    const reads = new Map([...this.#reads, ...link.reads])
    const writes = new Map([...this.#writes, ...link.writes.map((write) => [keyOfWrite(write), write] as const)])
    if (!fitsGroup({ reads, writes: [...writes.values()] }, this.#operationsMax)) return false
    this.#append(link)
    return true
  }

  /** Returns the revision of each key. `firstRevision` is that of the first write. */
  revisionsFrom(firstRevision: Revision): ReadonlyMap<string, Revision> {
    return new Map(this.keys.map((key, index) => [key, firstRevision + index]))
  }

  #append(link: Link): void {
    this.links.push(link)
    for (const [key, revision] of link.reads) this.#reads.set(key, revision)
    for (const write of link.writes) {
      this.#writes.delete(keyOfWrite(write)) // a total has the revision of its last write
      this.#writes.set(keyOfWrite(write), write)
    }
  }

  /** Returns the coalescable put of a key, unless the put creates the key: watchers must receive the creation. */
  #totalOf(key: string): Put | undefined {
    const write = this.#writes.get(key)
    return write && 'put' in write && write.isCoalescable && this.#reads.get(key) !== 0 ? write : undefined
  }
}
