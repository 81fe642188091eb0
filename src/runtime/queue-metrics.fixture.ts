// Metrics for tests that observe which keys a controller enqueues.
import type { ClientMetrics } from './metrics.ts'

export const queueMetrics = (onChange: (key: string) => void): ClientMetrics => {
  const follow = () => ({ note: onChange, recordAttempt: () => {}, stop: () => {} })
  return { queues: new Set(), operations: { follow } } as unknown as ClientMetrics
}
