// A quota with its bounds and its use as numbers: what charging works on (charge.ts). In a busy namespace one write follows
// the other, and only the last of a group commit is put into words again.

import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { canonicalQuantity, compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../quantity.ts'

export class QuotaAccount {
  /** Its status may be older than `used`. */
  readonly quota: Readonly<ResourceQuota>
  /** By key, in the quota's order. */
  readonly bounds: ReadonlyMap<string, Quantity>
  /** What is known of its keys. */
  readonly used: ReadonlyMap<string, Quantity>

  private constructor({ quota, bounds, used }: Pick<QuotaAccount, 'quota' | 'bounds' | 'used'>) {
    this.quota = quota
    this.bounds = bounds
    this.used = used
  }

  static of(quota: Readonly<ResourceQuota>): QuotaAccount {
    const bounds = amountsOf(Object.entries(quota.spec?.hard ?? {}))
    const said = Object.entries(quota.status?.used ?? {}).filter(([key]) => bounds.has(key))
    return new QuotaAccount({ quota, bounds, used: amountsOf(said) })
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
 * Written as it is read back: a sum of a binary format that no binary suffix fits is a decimal number, and so is one
 * above 8Ei, where binary amounts end.
 */
function textOfAmount(amount: Quantity): string {
  const text = canonicalQuantity(formatQuantity(amount))
  if (compareQuantities(text, amount) === 0) return text
  return formatQuantity({ nanos: amount.nanos, format: 'decimal' })
}
