// Locks volumes and snapshots. An operation that conflicts with another fails with ABORTED instead of waiting, as the CSI
// specification recommends.
import { operationInProgress } from './errors.ts'

export interface Locks {
  /** Shared locks exclude only exclusive ones: the source of two clones cannot be deleted during the copies. */
  run<T>(
    ids: { readonly exclusive: readonly string[]; readonly shared?: readonly string[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Returns whether an operation holds a lock on the id. */
  isHeld(id: string): boolean
}

export function createLocks(): Locks {
  /** By id, the number of shared locks, or EXCLUSIVE. */
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
          const remainingHolders = holders.get(id)! - 1
          if (remainingHolders > 0) holders.set(id, remainingHolders)
          else holders.delete(id)
        }
      }
    },
  }
}

const EXCLUSIVE = -1
