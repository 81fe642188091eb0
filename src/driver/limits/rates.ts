// Parses the IO limits in class parameters and mutable parameters, and rejects limits that the backend cannot enforce:
//   iops        500
//   throughput  100 (MiB/s) · 50Mi · 50MiB/s · 1000M · 1GB/s
// Zero removes a limit.
import { invalid, quote } from '../errors.ts'

/** Limits of a volume. Omitted values are not limited. Reads and writes are limited separately. */
export interface RateLimits {
  readonly iops?: number
  readonly throughputBytes?: number
}

const IOPS_MAX = 2 ** 32 - 1 // maximum of the kernel
/** One page per second. With a lower limit, a single request would take too long. */
const THROUGHPUT_BYTES_MIN = 4_096
const MIB = 1_048_576

export function parseIops(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > IOPS_MAX) {
    throw invalid(`iops ${quote(text)}: expected a whole number from 1 to ${IOPS_MAX}, or 0 for no limit.`)
  }
  return Number(text)
}

export function parseThroughput(text: string): number {
  const match = /^(\d{1,15})(?:([KMG]i?)?B?(?:\/s)?)$/.exec(text)
  const isPlain = /^\d+$/.test(text)
  const bytes = match ? Number(match[1]) * (isPlain ? MIB : UNIT_BYTES[match[2] ?? '']!) : Number.NaN
  if (!Number.isSafeInteger(bytes)) {
    throw invalid(
      `throughput ${quote(text)}: expected MiB/s as a whole number, such as 100, or a rate such as 50MiB/s.`,
    )
  }
  if (bytes > 0 && bytes < THROUGHPUT_BYTES_MIN) {
    throw invalid(
      `throughput ${quote(text)} is below the smallest limit, ${THROUGHPUT_BYTES_MIN}B/s. Use 0 for no limit.`,
    )
  }
  return bytes
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  '': 1,
  K: 1_000,
  M: 1_000_000,
  G: 1_000_000_000,
  Ki: 1_024,
  Mi: MIB,
  Gi: 1_073_741_824,
}

/** Rejects limits that the backend can never enforce. Zero, which removes a limit, is accepted. */
export function requireEnforceable(
  rates: RateLimits,
  { limitsUnsupportedReason }: { readonly limitsUnsupportedReason?: string },
): void {
  if (limitsUnsupportedReason === undefined || !(rates.iops || rates.throughputBytes)) return
  throw invalid(
    `iops and throughput cannot be enforced on this node: ${limitsUnsupportedReason} Use a class without them, or a node with loop devices.`,
  )
}

export const hasLimits = (rates: RateLimits): boolean => rates.iops !== undefined || rates.throughputBytes !== undefined
