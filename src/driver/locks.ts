// One operation per volume or snapshot at a time. A second one is not queued but refused with ABORTED, as the protocol
// asks: the caller has lost track, and by the time it asks again the first may have done the work.
import { busy } from './errors.ts'

export interface Locks {
  /** Shared holders exclude only exclusive ones: two clones may be made of one volume, but it cannot be deleted meanwhile. */
  run<T>(
    held: { readonly exclusive: readonly string[]; readonly shared?: readonly string[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Whether something is being done to it. */
  isHeld(id: string): boolean
}

export function createLocks(): Locks {
  /** Id → how many share it; -1: held by one alone. */
  const holders = new Map<string, number>()

  return {
    isHeld: (id) => holders.has(id),
    async run({ exclusive, shared = [] }, work) {
      for (const id of exclusive) if (holders.has(id)) throw busy(id)
      for (const id of shared) if (holders.get(id) === ALONE) throw busy(id)
      for (const id of exclusive) holders.set(id, ALONE)
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

const ALONE = -1
