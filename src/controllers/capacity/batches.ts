// Batches changes per segment or class until they pause, so that a burst of volumes causes one GetCapacity call and one write.
//
//   changes   x x   x  x                  x  x  x  x  x  x  x …
//   flush               └ quietMs later                      └ atMostMs after the first
import type { Clock } from '../../base/clock.ts'
import type { AffectedItems } from './affected-items.ts'

export interface BatchOptions {
  readonly clock: Clock
  readonly quietMs: number
  readonly atMostMs: number
  readonly flush: (affected: AffectedItems) => void
}

/** Bounded by the number of segments and classes. */
export interface Batches {
  add(affected: AffectedItems): void
  stop(): void
}

export function createBatches({ clock, quietMs, atMostMs, flush }: BatchOptions): Batches {
  const open = new Map<string, { readonly firstMs: number; lastMs: number; cancel: () => void }>()

  function check(id: string, affected: AffectedItems): void {
    const batch = open.get(id)!
    const dueMs = Math.min(batch.lastMs + quietMs, batch.firstMs + atMostMs)
    const leftMs = dueMs - clock.monotonicMs()
    if (leftMs > 0) {
      batch.cancel = clock.after(leftMs, () => check(id, affected))
      return
    }
    open.delete(id)
    flush(affected)
  }

  return {
    add(affected) {
      const id = JSON.stringify(affected)
      const nowMs = clock.monotonicMs()
      const batch = open.get(id)
      if (batch) {
        batch.lastMs = nowMs
        return
      }
      const cancel = clock.after(quietMs, () => check(id, affected))
      open.set(id, { firstMs: nowMs, lastMs: nowMs, cancel })
    },
    stop() {
      for (const { cancel } of open.values()) cancel()
      open.clear()
    },
  }
}
