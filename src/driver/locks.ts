// One operation per volume or snapshot at a time. A second one fails with ABORTED instead of waiting, as the CSI
// specification recommends: the caller has lost track of the first one, and a retry will find its result.
import { operationInProgress } from './errors.ts'

export interface Locks {
  /** Shared locks exclude only exclusive ones: a volume can be the source of two clones, but cannot be deleted meanwhile. */
  run<T>(
    held: { readonly exclusive: readonly string[]; readonly shared?: readonly string[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Whether an operation holds a lock on the id. */
  isHeld(id: string): boolean
}

export function createLocks(): Locks {
  /** Id → number of shared locks, or EXCLUSIVE. */
  const holders = new Map<string, number>()

  return {
    isHeld: (id) => holders.has(id),
    async run({ exclusive, shared = [] }, work) {
      for (const id of exclusive) if (holders.has(id)) throw operationInProgress(id)
      for (const id of shared) if (holders.get(id) === EXCLUSIVE) throw operationInProgress(id)
      for (const id of exclusive) holders.set(id, EXCLUSIVE)
      for (const id of shared) holders.set(id, (holders.get(id) ?? 0) + 1)
      try {
        return await work()
      } finally {
        for (const id of exclusive) holders.delete(id)
        for (const id of shared) {
          const left = holders.get(id)! - 1
          if (left > 0) holders.set(id, left)
          else holders.delete(id)
        }
      }
    },
  }
}

const EXCLUSIVE = -1
