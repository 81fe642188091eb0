// The size of a volume, from the range a caller gives. Sizes are whole bytes, promised exactly as asked.
import type { CapacityRange } from '../csi/gen/csi_pb.js'
import { invalid, outOfRange, sizeText } from './errors.ts'

export interface Range {
  /** 0: not given. */
  readonly requiredBytes: number
  readonly limitBytes: number
}

/** For callers that name no size at all. */
const DEFAULT_BYTES = 1_073_741_824

export function rangeOf(range: CapacityRange | undefined): Range {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {}
  if (requiredBytes < 0n || limitBytes < 0n) throw invalid('Sizes in capacity_range must not be negative.')
  if (limitBytes > 0n && requiredBytes > limitBytes) {
    throw invalid(`capacity_range asks for at least ${requiredBytes} and at most ${limitBytes} bytes: nothing is both.`)
  }
  if (requiredBytes > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw outOfRange(`${requiredBytes} bytes are more than any volume here can have.`)
  }
  return { requiredBytes: Number(requiredBytes), limitBytes: Number(limitBytes) }
}

/** The size to make, or OUT_OF_RANGE. */
export function chooseBytes(
  { requiredBytes, limitBytes }: Range,
  { minimumBytes, what }: { minimumBytes: number; what: string },
): number {
  const ceiling = limitBytes === 0 ? Number.POSITIVE_INFINITY : limitBytes
  if (ceiling < minimumBytes || (requiredBytes > 0 && requiredBytes < minimumBytes)) {
    throw outOfRange(`${what} needs at least ${sizeText(minimumBytes)}. Ask for that much or more.`)
  }
  return requiredBytes > 0 ? requiredBytes : Math.max(minimumBytes, Math.min(DEFAULT_BYTES, ceiling))
}

/** Why a volume of this size is not what was asked for. */
export function misfit({ requiredBytes, limitBytes }: Range, capacityBytes: number): string | undefined {
  if (requiredBytes > capacityBytes)
    return `it has ${sizeText(capacityBytes)}, and ${sizeText(requiredBytes)} are wanted`
  if (limitBytes > 0 && capacityBytes > limitBytes)
    return `it has ${sizeText(capacityBytes)}, and at most ${sizeText(limitBytes)} are wanted`
  return undefined
}
