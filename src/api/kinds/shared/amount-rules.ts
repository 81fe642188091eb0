// Validates the upper bound of storage, iops and throughput. A larger amount cannot be provisioned, because CSI uses signed
// 64-bit integers. An amount that is already stored is not rejected.
import type { FieldErrors } from '../../field-errors.ts'
import { quantityToBytes } from '../../quantity.ts'
import { amountOf, type ResourceList } from './provisioned-io.ts'

const AMOUNT_MAX = 2n ** 63n - 1n

export interface BoundedAmounts {
  readonly amounts: ResourceList | undefined
  readonly names: readonly string[]
  /** The amounts of the stored object. */
  readonly storedAmounts: ResourceList | undefined
  fieldOf(name: string): string
}

export function validateMaxAmounts(
  { amounts, names, storedAmounts, fieldOf }: BoundedAmounts,
  errors: FieldErrors,
): void {
  for (const name of names) {
    const amount = amountOf(amounts, name)
    if (amount === undefined || amount === amountOf(storedAmounts, name) || quantityToBytes(amount) <= AMOUNT_MAX)
      continue
    errors.invalid(
      fieldOf(name),
      amount,
      `must be at most ${AMOUNT_MAX} (about 8Ei), the largest amount that a CSI driver can provision`,
    )
  }
}
