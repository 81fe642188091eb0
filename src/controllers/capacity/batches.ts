// Batches changes per segment until they pause, so that a burst of volumes causes one GetCapacity call and one write.
//
//   changes   x x   x  x                  x  x  x  x  x  x  x …
//   flush               └ quietMs later                      └ atMostMs after the first
import type { Clock } from '../../base/clock.ts'
import type { Place } from './places.ts'

export interface BatchOptions {
  readonly clock: Clock
  readonly quietMs: number
  readonly atMostMs: number
  readonly tell: (place: Place) => void
}

/** Bounded by the number of segments. */
export interface Batches {
  add(place: Place): void
  stop(): void
}

export function createBatches({ clock, quietMs, atMostMs, tell }: BatchOptions): Batches {
  const open = new Map<string, { readonly firstMs: number; lastMs: number; cancel: () => void }>()

  function check(id: string, place: Place): void {
    const batch = open.get(id)!
    const dueMs = Math.min(batch.lastMs + quietMs, batch.firstMs + atMostMs)
    const leftMs = dueMs - clock.monotonicMs()
    if (leftMs > 0) {
      batch.cancel = clock.after(leftMs, () => check(id, place))
      return
    }
    open.delete(id)
    tell(place)
  }

  return {
    add(place) {
      const id = JSON.stringify(place)
      const nowMs = clock.monotonicMs()
      const batch = open.get(id)
      if (batch) {
        batch.lastMs = nowMs
        return
      }
      const cancel = clock.after(quietMs, () => check(id, place))
      open.set(id, { firstMs: nowMs, lastMs: nowMs, cancel })
    },
    stop() {
      for (const { cancel } of open.values()) cancel()
      open.clear()
    },
  }
}
