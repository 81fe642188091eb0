// A quota with parsed limits and usage, to which charge-quota.ts charges writes. A group commit can charge many writes to one
// account before its usage is formatted.

import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { canonicalQuantity, compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../quantity.ts'

export class QuotaAccount {
  /** The quota object. Its status may be older than `used`. */
  readonly quota: Readonly<ResourceQuota>
  /** Limits by key, in the order of the quota. */
  readonly limits: ReadonlyMap<string, Quantity>
  /** Known usage by key. */
  readonly used: ReadonlyMap<string, Quantity>

  private constructor({ quota, limits, used }: Pick<QuotaAccount, 'quota' | 'limits' | 'used'>) {
    this.quota = quota
    this.limits = limits
    this.used = used
  }

  static create(quota: Readonly<ResourceQuota>): QuotaAccount {
    const limits = parseAmounts(Object.entries(quota.spec?.hard ?? {}))
    const knownUsage = Object.entries(quota.status?.used ?? {}).filter(([key]) => limits.has(key))
    return new QuotaAccount({ quota, limits, used: parseAmounts(knownUsage) })
  }

  /** Returns an account of the same quota with another usage. */
  withUsage(usedAmounts: ReadonlyMap<string, Quantity>): QuotaAccount {
    return new QuotaAccount({ quota: this.quota, limits: this.limits, used: usedAmounts })
  }

  get name(): string {
    return this.quota.metadata.name ?? ''
  }

  toObject(): ResourceQuota {
    const hard = this.quota.spec?.hard ?? {}
    return { ...this.quota, status: { hard, used: formatAmounts(this.used) } }
  }
}

const parseAmounts = (entries: readonly [string, string][]): Map<string, Quantity> =>
  new Map(entries.map(([key, amount]) => [key, parseQuantity(amount)]))

export const formatAmounts = (usedAmounts: ReadonlyMap<string, Quantity>): Record<string, string> =>
  Object.fromEntries([...usedAmounts].map(([key, amount]) => [key, formatAmount(amount)]))

/**
 * Formats an amount so that it can be parsed without loss. A binary amount that no binary suffix can express, or above the
 * cap of binary amounts (8Ei), is formatted as a decimal number.
 */
function formatAmount(amount: Quantity): string {
  const text = canonicalQuantity(formatQuantity(amount))
  if (compareQuantities(text, amount) === 0) return text
  return formatQuantity({ nanos: amount.nanos, format: 'decimal' })
}
