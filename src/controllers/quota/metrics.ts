// The metrics of the quota controller. A difference indicates a bug or an edited status.
import { Counter, type Registry } from 'prom-client'

export interface QuotaMetrics {
  countVerifications(quotas: number): void
  countDifference(): void
}

export function createQuotaMetrics(registry: Registry): QuotaMetrics {
  const registers = [registry]
  const verifications = new Counter({
    name: 'stowage_quota_verifications_total',
    help: 'Quotas whose usage was recomputed and compared.',
    registers,
  })
  const differences = new Counter({
    name: 'stowage_quota_differences_total',
    help: 'Quotas whose usage differed from the sum over their objects and was repaired. Should stay 0.',
    registers,
  })
  return { countVerifications: (quotas) => verifications.inc(quotas), countDifference: () => differences.inc() }
}
