// Measures the duration of provisioning and deleting a volume, from the first request to the end, and counts errors, within
// this process.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { BindingMetrics } from './metrics.ts'

/** Further concurrent operations are not measured. */
const OPERATIONS_MAX = 100_000

export interface OperationTimes {
  /** Starts the measurement. Repeated calls before `end` have no effect. */
  begin(key: ObjectKey, plugin: string): void
  has(key: ObjectKey): boolean
  countError(key: ObjectKey): void
  /** Records the duration. Has no effect if the operation did not start in this process. */
  end(key: ObjectKey): void
  /** Discards the measurement of an operation that ended without a result. */
  cancel(key: ObjectKey): void
}

export function createOperationTimes(
  operationName: 'provision' | 'delete',
  { clock, metrics }: { readonly clock: Clock; readonly metrics: BindingMetrics | undefined },
): OperationTimes {
  const operations = new Map<ObjectKey, { readonly plugin: string; readonly startMs: number }>()
  return {
    begin(key, plugin) {
      if (operations.has(key) || operations.size >= OPERATIONS_MAX) return
      operations.set(key, { plugin, startMs: clock.monotonicMs() })
    },
    has: (key) => operations.has(key),
    countError(key) {
      const operation = operations.get(key)
      if (operation) metrics?.countOperationError(operation.plugin, operationName)
    },
    end(key) {
      const operation = operations.get(key)
      if (!operation) return
      operations.delete(key)
      metrics?.observeOperation(operation.plugin, operationName, (clock.monotonicMs() - operation.startMs) / 1_000)
    },
    cancel: (key) => void operations.delete(key),
  }
}
