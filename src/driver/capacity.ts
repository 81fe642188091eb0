// Chooses the size of a volume from a CapacityRange. The size is exactly the requested number of bytes.
import type { CapacityRange } from '../csi/gen/csi_pb.js'
import { formatSize, invalid, outOfRange } from './errors.ts'

export interface Range {
  /** Zero if not specified. */
  readonly requiredBytes: number
  readonly limitBytes: number
}

/** The size of volumes without a requested size. */
const DEFAULT_BYTES = 1_073_741_824

export function parseRange(range: CapacityRange | undefined): Range {
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

/** Returns the size of the new volume, or throws OUT_OF_RANGE. */
export function chooseBytes(
  { requiredBytes, limitBytes }: Range,
  { minimumBytes, subject }: { minimumBytes: number; subject: string },
): number {
  const ceiling = limitBytes === 0 ? Number.POSITIVE_INFINITY : limitBytes
  if (ceiling < minimumBytes || (requiredBytes > 0 && requiredBytes < minimumBytes)) {
    throw outOfRange(`${subject} needs at least ${formatSize(minimumBytes)}. Request that size or more.`)
  }
  return requiredBytes > 0 ? requiredBytes : Math.max(minimumBytes, Math.min(DEFAULT_BYTES, ceiling))
}

/** Returns a message if an existing volume of this size does not match the request. */
export function describeSizeMismatch({ requiredBytes, limitBytes }: Range, capacityBytes: number): string | undefined {
  if (requiredBytes > capacityBytes)
    return `it has ${formatSize(capacityBytes)}, and ${formatSize(requiredBytes)} is requested`
  if (limitBytes > 0 && capacityBytes > limitBytes)
    return `it has ${formatSize(capacityBytes)}, and at most ${formatSize(limitBytes)} is requested`
  return undefined
}
