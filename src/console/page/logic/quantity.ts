// Converts sizes of the API, and sizes that the user types, to bytes and back.
import { canonicalQuantity, isQuantity, quantityToBytes } from '../../../api/quantity.ts'

/** Returns the bytes of a quantity. Undefined if the value is absent or not a quantity. */
export function parseBytes(quantity: string | number | undefined | null): number | undefined {
  return quantity !== undefined && quantity !== null && isQuantity(quantity)
    ? Number(quantityToBytes(quantity))
    : undefined
}

/** Returns a size that the user typed in canonical form and in bytes, or the problem to show if it is not a positive size. */
export function readSize(
  text: string,
): { readonly size: string; readonly bytes: number } | { readonly problem: string } {
  const trimmed = text.trim()
  if (trimmed === '') return { problem: 'Enter a size, such as 20Gi.' }
  const bytes = parseBytes(trimmed)
  if (bytes === undefined) return { problem: `"${trimmed}" is not a size. Write a number with a unit, such as 20Gi.` }
  if (bytes <= 0) return { problem: 'The size must be greater than zero.' }
  return { size: canonicalQuantity(trimmed), bytes }
}

/** Returns bytes as a quantity, rounded up to whole KiB: 1610612736 becomes `1536Mi`. */
export const formatQuantity = (bytes: number): string => canonicalQuantity(`${Math.ceil(bytes / 1024)}Ki`)
