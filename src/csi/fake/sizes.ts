// The size a volume gets for the range that was asked.
import type { CapacityRange } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'

export interface Range {
  readonly requiredBytes: number
  /** Infinity when there is no limit. */
  readonly limitBytes: number
}

export function rangeOf(range: CapacityRange | undefined): Range | undefined {
  if (!range || (range.requiredBytes === 0n && range.limitBytes === 0n)) return undefined
  if (range.requiredBytes < 0n || range.limitBytes < 0n) fail('INVALID_ARGUMENT', 'a size is negative')
  const requiredBytes = Number(range.requiredBytes)
  const limitBytes = range.limitBytes === 0n ? Number.POSITIVE_INFINITY : Number(range.limitBytes)
  if (limitBytes < requiredBytes) fail('OUT_OF_RANGE', 'the limit is below what is required')
  return { requiredBytes, limitBytes }
}

/** The smallest size in the range that this driver makes; `atLeastBytes` where nothing more is required. */
export function chooseSize({ settings }: Model, range: Range | undefined, atLeastBytes: number): number {
  const wanted = Math.max(range?.requiredBytes ?? 0, atLeastBytes)
  const size = Math.ceil(wanted / settings.roundToBytes) * settings.roundToBytes
  if (size > settings.maximumBytes) fail('OUT_OF_RANGE', `no volume can have more than ${settings.maximumBytes} bytes`)
  if (range && size > range.limitBytes) fail('OUT_OF_RANGE', `${size} bytes are more than the limit`)
  return size
}

export const isWithin = (bytes: number, range: Range | undefined) =>
  !range || (bytes >= range.requiredBytes && bytes <= range.limitBytes)
