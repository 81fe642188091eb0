// A quota with its limits and usage as numbers, for charging (charge.ts). In a busy namespace many writes are charged in one
// group commit, and only the final usage is formatted again.

import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { canonicalQuantity, compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../quantity.ts'

export class QuotaAccount {
  /** The status may be older than `used`. */
  readonly quota: Readonly<ResourceQuota>
  /** Limits by key, in the order of the quota. */
  readonly bounds: ReadonlyMap<string, Quantity>
  /** Known usage by key. */
  readonly used: ReadonlyMap<string, Quantity>

  private constructor({ quota, bounds, used }: Pick<QuotaAccount, 'quota' | 'bounds' | 'used'>) {
    this.quota = quota
    this.bounds = bounds
    this.used = used
  }

  static of(quota: Readonly<ResourceQuota>): QuotaAccount {
    const bounds = amountsOf(Object.entries(quota.spec?.hard ?? {}))
    const known = Object.entries(quota.status?.used ?? {}).filter(([key]) => bounds.has(key))
    return new QuotaAccount({ quota, bounds, used: amountsOf(known) })
  }

  /** The same quota after a write. */
  with(used: ReadonlyMap<string, Quantity>): QuotaAccount {
    return new QuotaAccount({ quota: this.quota, bounds: this.bounds, used })
  }

  get name(): string {
    return this.quota.metadata.name ?? ''
  }

  toObject(): ResourceQuota {
    const hard = this.quota.spec?.hard ?? {}
    return { ...this.quota, status: { hard, used: textOf(this.used) } }
  }
}

const amountsOf = (entries: readonly [string, string][]): Map<string, Quantity> =>
  new Map(entries.map(([key, amount]) => [key, parseQuantity(amount)]))

export const textOf = (used: ReadonlyMap<string, Quantity>): Record<string, string> =>
  Object.fromEntries([...used].map(([key, amount]) => [key, textOfAmount(amount)]))

/**
 * A text that parses to the same amount. A binary amount that no binary suffix can express, or above 8Ei, where binary
 * amounts are capped, is formatted as a decimal number.
 */
function textOfAmount(amount: Quantity): string {
  const text = canonicalQuantity(formatQuantity(amount))
  if (compareQuantities(text, amount) === 0) return text
  return formatQuantity({ nanos: amount.nanos, format: 'decimal' })
}
