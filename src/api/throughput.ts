// Gives throughput one unit. People write MiB/s ("100") or bytes/s ("50Mi"); everything that adds, compares
// or sends throughput sees bytes/s. Claims, volumes, quotas and limit ranges normalise with this on every write.
import { formatQuantity, isQuantity, parseQuantity } from './quantity.ts'

const NANOS_PER_UNIT = 1_000_000_000n
const BYTES_PER_MIB = 1_048_576n

/**
 * From 1 up to below 1Mi the number counts MiB/s; from 1Mi up it is bytes/s already, so repeating changes nothing.
 *   100 → 100Mi    1k → 1000Mi    50Mi → 50Mi    1000M → 1G    0, negatives, fractions of one: as they are
 */
export function normalizeThroughput(quantity: string): string {
  if (!isQuantity(quantity)) return quantity
  const parsed = parseQuantity(quantity)
  const countsMebibytes = parsed.nanos >= NANOS_PER_UNIT && parsed.nanos < BYTES_PER_MIB * NANOS_PER_UNIT
  if (!countsMebibytes) return formatQuantity(parsed)
  return formatQuantity({ nanos: parsed.nanos * BYTES_PER_MIB, format: 'binary' })
}
