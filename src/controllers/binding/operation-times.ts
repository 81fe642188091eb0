// Measures how long provisioning and deleting take: from the first request to the end, as this process sees them.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { BindingMetrics } from './metrics.ts'

/** Operations beyond this number at once are not measured. */
const TIMED_MAX = 100_000

export interface OperationTimes {
  /** Repeated calls before `end` are ignored. */
  begin(key: ObjectKey, plugin: string): void
  failed(key: ObjectKey): void
  /** Does nothing if the operation did not start in this process. */
  end(key: ObjectKey): void
  /** The operation ended without the measured result. */
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
