// Batches changes per segment or class, so that a burst of changes causes one GetCapacity call and one write per object.
//
//   changes   x x   x  x                  x  x  x  x  x  x  x …
//   flush               └ quietMs later                      └ maxDelayMs after the first change
import type { Clock } from '../../base/clock.ts'
import type { AffectedItems } from './affected-items.ts'

export interface BatchOptions {
  readonly clock: Clock
  readonly quietMs: number
  readonly maxDelayMs: number
  readonly flush: (items: AffectedItems) => void
}

/** Bounded by the number of segments and classes. */
export interface Batches {
  add(items: AffectedItems): void
  stop(): void
}

export function createBatches({ clock, quietMs, maxDelayMs, flush }: BatchOptions): Batches {
  const batches = new Map<string, { readonly firstMs: number; lastMs: number; cancel: () => void }>()

  function flushIfDue(id: string, items: AffectedItems): void {
    const batch = batches.get(id)!
    const dueMs = Math.min(batch.lastMs + quietMs, batch.firstMs + maxDelayMs)
    const remainingMs = dueMs - clock.monotonicMs()
    if (remainingMs > 0) {
      batch.cancel = clock.after(remainingMs, () => flushIfDue(id, items))
      return
    }
    batches.delete(id)
    flush(items)
  }

  return {
    add(items) {
      const id = JSON.stringify(items)
      const nowMs = clock.monotonicMs()
      const batch = batches.get(id)
      if (batch) {
        batch.lastMs = nowMs
        return
      }
      const cancel = clock.after(quietMs, () => flushIfDue(id, items))
      batches.set(id, { firstMs: nowMs, lastMs: nowMs, cancel })
    },
    stop() {
      for (const { cancel } of batches.values()) cancel()
      batches.clear()
    },
  }
}
