// How long claims waited for a volume to be made, and volumes for being deleted: from the first time it was asked for
// to the end of it, in this process.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { BindingMetrics } from './metrics.ts'

/** More that are begun at once are not timed. */
const TIMED_MAX = 100_000

export interface OperationTimes {
  /** Only the first call counts until it has ended. */
  begin(key: ObjectKey, plugin: string): void
  failed(key: ObjectKey): void
  /** Nothing if it was not begun here. */
  end(key: ObjectKey): void
  /** It ended without the outcome that is timed. */
  forget(key: ObjectKey): void
}

export function createOperationTimes(
  operation: 'provision' | 'delete',
  { clock, metrics }: { readonly clock: Clock; readonly metrics: BindingMetrics | undefined },
): OperationTimes {
  const begun = new Map<ObjectKey, { readonly plugin: string; readonly sinceMs: number }>()
  return {
    begin(key, plugin) {
      if (begun.has(key) || begun.size >= TIMED_MAX) return
      begun.set(key, { plugin, sinceMs: clock.monotonicMs() })
    },
    failed(key) {
      const one = begun.get(key)
      if (one) metrics?.operationFailed(one.plugin, operation)
    },
    end(key) {
      const one = begun.get(key)
      if (!one) return
      begun.delete(key)
      metrics?.operationTook(one.plugin, operation, (clock.monotonicMs() - one.sinceMs) / 1_000)
    },
    forget: (key) => void begun.delete(key),
  }
}
