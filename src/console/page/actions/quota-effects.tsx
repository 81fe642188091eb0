// Shows, for each quota that applies to a request, the usage after the request and the hard limit.
import { StatusIcon } from '../components/status.tsx'
import { formatBytes, formatCount } from '../logic/format.ts'
import type { QuotaEffect, QuotaLimit } from '../logic/quota-check.ts'
import { quotas } from '../state/collections.ts'

export const formatAmount = (amount: number, { unit }: Pick<QuotaLimit, 'unit'>): string =>
  unit === 'bytes' ? formatBytes(amount) : formatCount(amount)

export function QuotaEffects({ effects }: { readonly effects: readonly QuotaEffect[] }) {
  const { is, error } = quotas.state.value
  if (is === 'failed') return <span class="unavailable">unavailable: {error?.message}</span>
  if (effects.length === 0) return <span class="muted">no quota limits this</span>
  return (
    <ul class="effects">
      {effects.map(({ limit, usedAfter, fits }) => (
        <li key={`${limit.quota} ${limit.key}`} class={`status tone-${fits === false ? 'bad' : fits ? 'ok' : 'warn'}`}>
          <StatusIcon tone={fits === false ? 'bad' : fits ? 'ok' : 'warn'} />
          {limit.quota}:{' '}
          {usedAfter === undefined ? 'usage not known yet, limit' : `${formatAmount(usedAfter, limit)} of`}{' '}
          {formatAmount(limit.hard, limit)}
          {limit.unit === 'claims' && ' claims'}
          {limit.className !== undefined && ` of class ${limit.className}`}
        </li>
      ))}
    </ul>
  )
}
