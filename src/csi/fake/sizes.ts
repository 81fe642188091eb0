// The size a volume gets for the range that was asked.
import type { CapacityRange } from '../gen/csi_pb.js'
import { type Model, refuse } from './model.ts'

export interface Range {
  readonly requiredBytes: number
  /** Infinity when there is no limit. */
  readonly limitBytes: number
}

export function rangeOf(range: CapacityRange | undefined): Range | undefined {
  if (!range || (range.requiredBytes === 0n && range.limitBytes === 0n)) return undefined
  if (range.requiredBytes < 0n || range.limitBytes < 0n) refuse('INVALID_ARGUMENT', 'a size is negative')
  const requiredBytes = Number(range.requiredBytes)
  const limitBytes = range.limitBytes === 0n ? Number.POSITIVE_INFINITY : Number(range.limitBytes)
  if (limitBytes < requiredBytes) refuse('OUT_OF_RANGE', 'the limit is below what is required')
  return { requiredBytes, limitBytes }
}

/** The smallest size in the range that this driver makes; `atLeastBytes` where nothing more is required. */
export function sizeIn({ settings }: Model, range: Range | undefined, atLeastBytes: number): number {
  const wanted = Math.max(range?.requiredBytes ?? 0, atLeastBytes)
  const size = Math.ceil(wanted / settings.roundToBytes) * settings.roundToBytes
  if (size > settings.maximumBytes)
    refuse('OUT_OF_RANGE', `no volume can have more than ${settings.maximumBytes} bytes`)
  if (range && size > range.limitBytes) refuse('OUT_OF_RANGE', `${size} bytes are more than the limit`)
  return size
}

export const isWithin = (bytes: number, range: Range | undefined) =>
  !range || (bytes >= range.requiredBytes && bytes <= range.limitBytes)
