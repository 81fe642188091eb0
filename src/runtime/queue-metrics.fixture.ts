// Metrics for tests that observe which keys a controller reconciles: `onChange` is called at the start and end of each reconcile.
import type { ClientMetrics } from './metrics.ts'

export const queueMetrics = (onChange: (key: string) => void): ClientMetrics => {
  const follow = () => ({ note: onChange, recordAttempt: () => {}, stop: () => {} })
  return { queues: new Set(), operations: { follow } } as unknown as ClientMetrics
}
