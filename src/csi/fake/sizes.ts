// Parses a CapacityRange and chooses the size of a volume for it.
import type { CapacityRange } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'

export interface SizeRange {
  readonly requiredBytes: number
  /** Infinity if there is no limit. */
  readonly limitBytes: number
}

export function parseRange(range: CapacityRange | undefined): SizeRange | undefined {
  if (!range || (range.requiredBytes === 0n && range.limitBytes === 0n)) return undefined
  if (range.requiredBytes < 0n || range.limitBytes < 0n) fail('INVALID_ARGUMENT', 'capacity_range is negative')
  const requiredBytes = Number(range.requiredBytes)
  const limitBytes = range.limitBytes === 0n ? Number.POSITIVE_INFINITY : Number(range.limitBytes)
  if (limitBytes < requiredBytes) fail('OUT_OF_RANGE', 'limit_bytes is less than required_bytes')
  return { requiredBytes, limitBytes }
}

/** Returns the smallest supported size in the range that is at least `minimumBytes`. */
export function chooseSize({ settings }: Model, range: SizeRange | undefined, minimumBytes: number): number {
  const neededBytes = Math.max(range?.requiredBytes ?? 0, minimumBytes)
  const size = Math.ceil(neededBytes / settings.roundToBytes) * settings.roundToBytes
  if (size > settings.maximumBytes) fail('OUT_OF_RANGE', `a volume can have at most ${settings.maximumBytes} bytes`)
  if (range && size > range.limitBytes) fail('OUT_OF_RANGE', `${size} bytes exceed limit_bytes`)
  return size
}

export const isWithin = (bytes: number, range: SizeRange | undefined) =>
  !range || (bytes >= range.requiredBytes && bytes <= range.limitBytes)
