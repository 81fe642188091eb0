// Validates the upper bound of storage, iops and throughput: CSI carries amounts as signed 64-bit integers, so a larger one
// could never be provisioned. An amount that is stored already is not rejected.
import type { FieldErrors } from '../../field-errors.ts'
import { quantityToBytes } from '../../quantity.ts'
import { amountOf, type ResourceList } from './provisioned-io.ts'

const AMOUNT_MAX = 2n ** 63n - 1n

export interface AmountsToCheck {
  readonly amounts: ResourceList | undefined
  readonly names: readonly string[]
  /** The amounts of the stored object. */
  readonly stored: ResourceList | undefined
  fieldOf(name: string): string
}

export function validateAmountsFit({ amounts, names, stored, fieldOf }: AmountsToCheck, errors: FieldErrors): void {
  for (const name of names) {
    const amount = amountOf(amounts, name)
    if (amount === undefined || amount === amountOf(stored, name) || quantityToBytes(amount) <= AMOUNT_MAX) continue
    errors.invalid(
      fieldOf(name),
      amount,
      `must be at most ${AMOUNT_MAX} (about 8Ei), the largest size that a CSI driver can provision`,
    )
  }
}
