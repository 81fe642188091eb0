// Describes why the API server rejects a new claim or pod: a violated limit range or an exceeded quota.
import type { LimitRange } from '../api/kinds/limit-range/limit-range-schema.ts'
import { formatQuantity } from '../api/quantity.ts'
import { type Change, formatAmounts, type QuotaAccount } from '../api/quota/index.ts'
import { type Diagnosis, fix } from './diagnosis.ts'

export function describeLimitViolations(range: Readonly<LimitRange>, violations: readonly string[]): Diagnosis[] {
  const { namespace = '', name = '' } = range.metadata
  return violations.map((violation) => ({
    subject: { kind: 'LimitRange', namespace, name },
    state: 'failed',
    reason: 'LimitRangeViolated',
    message: violation,
    fixes: [fix('change the request, or the limit range', `kubectl -n ${namespace} edit limitrange ${name}`)],
  }))
}

export function describeQuotaExcess(account: QuotaAccount, changes: readonly Change[], message: string): Diagnosis {
  const { namespace = '', name = '' } = account.quota.metadata
  const used = formatAmounts(account.used)
  const amounts = changes.flatMap(({ key, newAmount }) => [
    [`${key} requested`, formatQuantity(newAmount)],
    [`${key} used`, used[key] ?? '0'],
    [`${key} limit`, account.quota.spec?.hard?.[key] ?? '0'],
  ])
  return {
    subject: { kind: 'ResourceQuota', namespace, name },
    state: 'failed',
    reason: 'QuotaExceeded',
    message,
    numbers: Object.fromEntries(amounts) as Record<string, string>,
    fixes: [
      fix('delete objects that are not needed, or lower the request'),
      fix('raise the quota', `kubectl -n ${namespace} edit resourcequota ${name}`),
    ],
  }
}
