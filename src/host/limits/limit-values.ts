// Formats limits for the kernel. Values are capped, because the kernel wraps an iops value of 2^32 to zero, which means
// no limit.
import { strict as assert } from 'node:assert'
import type { IoLimit } from '../host.ts'

export const LIMIT_KEYS = ['readIops', 'writeIops', 'readBps', 'writeBps'] as const satisfies (keyof IoLimit)[]
export type LimitKey = (typeof LIMIT_KEYS)[number]

const IOPS_MAX = 2n ** 32n - 1n
const BPS_MAX = 2n ** 63n - 1n

/** Returns a decimal integer from 1 to the maximum, or undefined if there is no limit. */
export function limitValue(limit: IoLimit, key: LimitKey): string | undefined {
  const rate = limit[key]
  if (rate === undefined) return undefined
  assert(Number.isFinite(rate) && rate > 0, `the limit ${key} must be a positive number: ${rate}`)
  const rounded = BigInt(Math.ceil(rate))
  const max = key === 'readIops' || key === 'writeIops' ? IOPS_MAX : BPS_MAX
  if (rounded > max) return String(max)
  return String(rounded)
}

export const isUnlimited = (limit: IoLimit) => LIMIT_KEYS.every((key) => limit[key] === undefined)
