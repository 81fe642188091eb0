// Chooses the size of a volume from a CapacityRange.
import type { CapacityRange } from '../csi/gen/csi_pb.js'
import { formatSize, invalid, outOfRange } from './errors.ts'

/** Values that are not specified are zero. */
export interface SizeRange {
  readonly requiredBytes: number
  readonly limitBytes: number
}

/** The size of volumes without a requested size. */
const DEFAULT_BYTES = 1_073_741_824

export function parseRange(range: CapacityRange | undefined): SizeRange {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {}
  if (requiredBytes < 0n || limitBytes < 0n) throw invalid('Sizes in capacity_range must not be negative.')
  if (limitBytes > 0n && requiredBytes > limitBytes) {
    throw invalid(`capacity_range.required_bytes ${requiredBytes} is greater than limit_bytes ${limitBytes}.`)
  }
  if (requiredBytes > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw outOfRange(`${requiredBytes} bytes exceed the maximum size of a volume.`)
  }
  return { requiredBytes: Number(requiredBytes), limitBytes: Number(limitBytes) }
}

export interface SizeRules {
  /** Sizes below this are rounded up to it, within the limit of the request. */
  readonly minimumBytes: number
  /** The size of the source of a copy. A request that is smaller, even after it is rounded up, is rejected. */
  readonly sourceBytes?: number
  /** The subject of the error message. */
  readonly subject: string
}

/** Returns the size of the new volume, or throws OUT_OF_RANGE. */
export function chooseBytes({ requiredBytes, limitBytes }: SizeRange, rules: SizeRules): number {
  const { minimumBytes, sourceBytes = 0, subject } = rules
  const ceiling = limitBytes === 0 ? Number.POSITIVE_INFINITY : limitBytes
  const neededBytes = Math.max(minimumBytes, sourceBytes)
  if (ceiling < neededBytes) {
    throw outOfRange(
      `${subject} needs at least ${formatSize(neededBytes)}, but limit_bytes is ${formatSize(limitBytes)}. Raise or omit the limit.`,
    )
  }
  if (requiredBytes > 0 && Math.max(requiredBytes, minimumBytes) < sourceBytes) {
    throw outOfRange(`${subject} needs at least ${formatSize(neededBytes)}. Request that size or more.`)
  }
  return Math.max(neededBytes, requiredBytes > 0 ? requiredBytes : Math.min(DEFAULT_BYTES, ceiling))
}

/** Returns a message if an existing volume of this size does not match the request. */
export function describeSizeMismatch(
  { requiredBytes, limitBytes }: SizeRange,
  capacityBytes: number,
): string | undefined {
  if (requiredBytes > capacityBytes)
    return `it has ${formatSize(capacityBytes)}, but ${formatSize(requiredBytes)} is requested`
  if (limitBytes > 0 && capacityBytes > limitBytes)
    return `it has ${formatSize(capacityBytes)}, but at most ${formatSize(limitBytes)} is requested`
  return undefined
}
