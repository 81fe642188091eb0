// Reads quantities of storage as numbers of bytes.
import { isQuantity, quantityToBytes } from '../../api/quantity.ts'

/** Returns undefined if the quantity is absent or invalid. */
export const bytesOf = (quantity: string | undefined): number | undefined =>
  quantity !== undefined && isQuantity(quantity) ? Number(quantityToBytes(quantity)) : undefined

/** Returns the sum of the known amounts, or undefined if none is known. */
export const sumOf = (amounts: readonly (number | undefined)[]): number | undefined =>
  amounts.reduce((sum, amount) => (amount === undefined ? sum : (sum ?? 0) + amount), undefined)
