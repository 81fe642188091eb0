// Normalizes throughput to bytes/s. Users write MiB/s ("100") or bytes/s ("50Mi").
import { formatQuantity, isQuantity, parseQuantity } from './quantity.ts'

const NANOS_PER_UNIT = 1_000_000_000n
const BYTES_PER_MIB = 1_048_576n

/**
 * Reads a value from 1 to below 1Mi as MiB/s and a larger one as bytes/s, which makes normalization idempotent.
 *   100 → 100Mi    1k → 1000Mi    50Mi → 50Mi    1000M → 1G    0, negative values, values below 1: unchanged
 */
export function normalizeThroughput(quantity: string): string {
  if (!isQuantity(quantity)) return quantity
  const parsedQuantity = parseQuantity(quantity)
  const isInMebibytes = parsedQuantity.nanos >= NANOS_PER_UNIT && parsedQuantity.nanos < BYTES_PER_MIB * NANOS_PER_UNIT
  if (!isInMebibytes) return formatQuantity(parsedQuantity)
  return formatQuantity({ nanos: parsedQuantity.nanos * BYTES_PER_MIB, format: 'binary' })
}
