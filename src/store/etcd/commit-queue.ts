// Transactions that wait at the same time are sent to etcd together: one call and one entry in its log for all of them.
// A lone one goes at once; while calls are under way, others gather. The order of asking is kept within a group.
// What etcd may be unable to take in one piece goes in smaller ones, in the end alone.
import type { Clock } from '../../base/clock.ts'
import { type Revision, StoreUnavailableError, type Write, WriteRefusedError } from '../store.ts'
import { SPAN } from './numbering.ts'

export const MEMBERS_MAX = 100 // with etcd's default of 128 operations, each may have more than one
const GROUP_BYTES_MAX = 1024 * 1024 // etcd takes 1.5 MiB at once (--max-request-bytes)
const CALLS_MAX = 2 // one is on its way to the disk while the next is prepared

/** What a transaction has decided: to write, if every key read still has the revision it had (0: does not exist). */
export interface Member {
  readonly reads: ReadonlyMap<string, Revision>
  readonly writes: readonly Write[]
}

export interface Commit {
  readonly isDone: boolean
  /** That of its first write, the others follow; the replica shows them already. Or when it was found to be impossible. */
  readonly revision: Revision
}

export interface CommitQueueOptions {
  /** Answers for each member. A WriteRefusedError concerns all of them: none was written. */
  readonly send: (group: readonly Member[]) => Promise<readonly Commit[]>
  /** etcd's --max-txn-ops: members, and what the largest of them compares or writes, together. */
  readonly operationsMax: number
  readonly clock: Clock
  /** Who has waited longer when the turn comes is refused, so that a queue does not outlive its callers. */
  readonly waitMsMax: number
}

interface Waiting extends Member {
  readonly sinceMs: number
  readonly resolve: (commit: Commit) => void
  readonly reject: (error: unknown) => void
}

export class CommitQueue {
  readonly #options: CommitQueueOptions
  #waiting: Waiting[] = []
  #calls = 0
  #isAboutToSend = false

  constructor(options: CommitQueueOptions) {
    this.#options = options
  }

  commit({ reads, writes }: Member): Promise<Commit> {
    if (writes.length > SPAN) {
      return Promise.reject(new WriteRefusedError(`a transaction may hold ${SPAN} writes, not ${writes.length}`))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ reads, writes, sinceMs: this.#options.clock.monotonicMs(), resolve, reject })
      if (this.#isAboutToSend || this.#calls >= CALLS_MAX) return
      this.#isAboutToSend = true
      queueMicrotask(() => {
        this.#isAboutToSend = false // those who asked in the same breath go together
        this.#sendNext()
      })
    })
  }

  #sendNext(): void {
    this.#refuseLate()
    while (this.#waiting.length > 0 && this.#calls < CALLS_MAX) {
      const group = this.#waiting.splice(0, countFitting(this.#waiting, this.#options.operationsMax))
      this.#calls++
      void this.#send(group).finally(() => {
        this.#calls--
        this.#sendNext()
      })
    }
  }

  #refuseLate(): void {
    const { clock, waitMsMax } = this.#options
    const nowMs = clock.monotonicMs()
    const isLate = ({ sinceMs }: Waiting) => nowMs - sinceMs > waitMsMax
    while (this.#waiting[0] && isLate(this.#waiting[0])) {
      this.#waiting.shift()?.reject(new StoreUnavailableError('etcd is too slow: others are still waiting before this'))
    }
  }

  async #send(group: readonly Waiting[]): Promise<void> {
    try {
      const commits = await this.#options.send(group)
      for (const [at, { resolve }] of group.entries()) resolve(commits[at] as Commit)
    } catch (error) {
      if (error instanceof WriteRefusedError && group.length > 1) {
        await Promise.all(group.map((member) => this.#send([member]))) // perhaps only one of them is too much
      } else {
        for (const { reject } of group) reject(error)
      }
    }
  }
}

/** How many of the first go into one group: at least one. */
function countFitting(waiting: readonly Member[], operationsMax: number): number {
  let count = 0
  let operations = 0
  let places = 0
  let bytes = 0
  for (const member of waiting) {
    if (count >= MEMBERS_MAX) break
    operations = Math.max(operations, operationsOf(member))
    places += member.writes.length
    bytes += bytesOf(member)
    const isTooMuch = count + 2 + operations > operationsMax || places > SPAN || bytes > GROUP_BYTES_MAX
    if (isTooMuch && count > 0) break
    count++
  }
  return count
}

const operationsOf = ({ reads, writes }: Member) => Math.max(reads.size, writes.length + 1)

function bytesOf({ reads, writes }: Member): number {
  let bytes = 0
  for (const key of reads.keys()) bytes += 2 * key.length // at least; every key written is among those read
  for (const write of writes) if ('put' in write) bytes += write.value.length
  return bytes
}
