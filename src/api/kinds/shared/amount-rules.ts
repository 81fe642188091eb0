// How much of storage, iops or throughput can be asked for at all: drivers are told amounts as signed 64-bit numbers, so a
// larger one could never be made true. It is refused where it is written, and left alone where it is stored already.
import type { FieldErrors } from '../../field-errors.ts'
import { quantityToBytes } from '../../quantity.ts'
import { amountOf, type ResourceList } from './provisioned-io.ts'

const AMOUNT_MAX = 2n ** 63n - 1n

export interface AmountsToCheck {
  readonly amounts: ResourceList | undefined
  readonly names: readonly string[]
  /** What the stored object has there. */
  readonly stored: ResourceList | undefined
  fieldOf(name: string): string
}

export function validateAmountsFit({ amounts, names, stored, fieldOf }: AmountsToCheck, errors: FieldErrors): void {
  for (const name of names) {
    const amount = amountOf(amounts, name)
    if (amount === undefined || amount === amountOf(stored, name) || quantityToBytes(amount) <= AMOUNT_MAX) continue
    errors.invalid(fieldOf(name), amount, `must be at most ${AMOUNT_MAX} (about 8Ei), more than any volume can have`)
  }
}
