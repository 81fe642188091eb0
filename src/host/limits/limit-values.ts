// Formats limits for the kernel. Values are capped, because the kernel wraps an iops value of 2^32 to zero, which means
// no limit.
import { strict as assert } from 'node:assert'
import type { IoLimit } from '../host.ts'

export const LIMIT_KEYS = ['readIops', 'writeIops', 'readBps', 'writeBps'] as const satisfies (keyof IoLimit)[]
export type LimitKey = (typeof LIMIT_KEYS)[number]

const IOPS_MAX = 2n ** 32n - 1n
const BPS_MAX = 2n ** 63n - 1n

/** A decimal integer from 1 to the maximum; undefined if there is no limit. */
export function limitValue(limit: IoLimit, key: LimitKey): string | undefined {
  const wanted = limit[key]
  if (wanted === undefined) return undefined
  assert(Number.isFinite(wanted) && wanted > 0, `the limit ${key} must be a positive number: ${wanted}`)
  const whole = BigInt(Math.ceil(wanted))
  const max = key === 'readIops' || key === 'writeIops' ? IOPS_MAX : BPS_MAX
  if (whole > max) return String(max)
  return String(whole)
}

export const isUnlimited = (limit: IoLimit) => LIMIT_KEYS.every((key) => limit[key] === undefined)
