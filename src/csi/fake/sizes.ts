// Chooses the size of a volume for a CapacityRange.
import type { CapacityRange } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'

export interface Range {
  readonly requiredBytes: number
  /** Infinity when there is no limit. */
  readonly limitBytes: number
}

export function rangeOf(range: CapacityRange | undefined): Range | undefined {
  if (!range || (range.requiredBytes === 0n && range.limitBytes === 0n)) return undefined
  if (range.requiredBytes < 0n || range.limitBytes < 0n) fail('INVALID_ARGUMENT', 'capacity_range is negative')
  const requiredBytes = Number(range.requiredBytes)
  const limitBytes = range.limitBytes === 0n ? Number.POSITIVE_INFINITY : Number(range.limitBytes)
  if (limitBytes < requiredBytes) fail('OUT_OF_RANGE', 'limit_bytes is less than required_bytes')
  return { requiredBytes, limitBytes }
}

/** The smallest size in the range that the driver supports, and at least `atLeastBytes`. */
export function chooseSize({ settings }: Model, range: Range | undefined, atLeastBytes: number): number {
  const wanted = Math.max(range?.requiredBytes ?? 0, atLeastBytes)
  const size = Math.ceil(wanted / settings.roundToBytes) * settings.roundToBytes
  if (size > settings.maximumBytes) fail('OUT_OF_RANGE', `a volume can have at most ${settings.maximumBytes} bytes`)
  if (range && size > range.limitBytes) fail('OUT_OF_RANGE', `${size} bytes exceed limit_bytes`)
  return size
}

export const isWithin = (bytes: number, range: Range | undefined) =>
  !range || (bytes >= range.requiredBytes && bytes <= range.limitBytes)
