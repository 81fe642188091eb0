// The metrics of the quota controller. A difference is a bug: alert on any.
import { Counter, type Registry } from 'prom-client'

export interface QuotaMetrics {
  verified(quotas: number): void
  foundDifference(): void
}

export function createQuotaMetrics(registry: Registry): QuotaMetrics {
  const registers = [registry]
  const verified = new Counter({
    name: 'stowage_quota_verifications_total',
    help: 'Quotas whose usage was recomputed and compared.',
    registers,
  })
  const differences = new Counter({
    name: 'stowage_quota_differences_total',
    help: 'Quotas whose usage differed from the sum over their objects and was repaired. Should stay 0.',
    registers,
  })
  return { verified: (quotas) => verified.inc(quotas), foundDifference: () => differences.inc() }
}
