// What the quota controller counts. A difference is a bug of ours: alert on any.
import { Counter, type Registry } from 'prom-client'

export interface QuotaMetrics {
  verified(quotas: number): void
  foundDifference(): void
}

export function createQuotaMetrics(registry: Registry): QuotaMetrics {
  const registers = [registry]
  const verified = new Counter({
    name: 'stowage_quota_verifications_total',
    help: 'Quotas whose use was counted again and compared.',
    registers,
  })
  const differences = new Counter({
    name: 'stowage_quota_differences_total',
    help: 'Quotas whose use was not what their objects add up to, and was repaired. Should stay 0.',
    registers,
  })
  return { verified: (quotas) => verified.inc(quotas), foundDifference: () => differences.inc() }
}
