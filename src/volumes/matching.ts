// Extracts the fields that matching compares: the requirements of a claim and the candidate of a volume. Sizes are exact,
// and access modes are bit sets, which are fast to compare. choose-volume.ts chooses among the candidates.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../api/kinds/shared/class-names.ts'
import { amountOf } from '../api/kinds/shared/provisioned-io.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { isQuantity, parseQuantity } from '../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject } from '../api/selectors.ts'
import { normalizeThroughput } from '../api/throughput.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'

export type Claim = Readonly<Stored<PersistentVolumeClaim>>
export type Volume = Readonly<Stored<PersistentVolume>>

/** The fields that must be equal in a claim and a free volume. */
export interface MatchedFields {
  readonly className: string
  /** Empty if there is no attributes class. */
  readonly attributesClass: string
  readonly volumeMode: string
}

/** Amounts of provisioned IO, in billionths of the unit of the quantity. Undefined if not set or not a quantity. */
export interface IoAmounts {
  readonly iops: bigint | undefined
  /** In billionths of a byte per second. */
  readonly throughput: bigint | undefined
}

export interface ClaimRequirements extends MatchedFields {
  readonly claimKey: ObjectKey
  /** In billionths of a byte, the unit of quantities. */
  readonly size: bigint
  readonly modes: AccessModes
  readonly selector: LabelSelector | undefined
  /** The IO that the claim requests. */
  readonly io: IoAmounts
}

export interface VolumeCandidate extends MatchedFields {
  readonly volume: Volume
  readonly size: bigint
  readonly modes: AccessModes
  /** The IO that the volume provides. An undefined amount matches every claim. */
  readonly io: IoAmounts
}

export const requirementsOf = (claim: Readonly<PersistentVolumeClaim>): ClaimRequirements => ({
  className: claimClassName(claim) ?? '',
  attributesClass: claim.spec?.volumeAttributesClassName ?? '',
  volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
  claimKey: keyOfObject(claim),
  size: sizeOf(claim.spec?.resources?.requests),
  modes: accessModeBits(claim.spec?.accessModes),
  selector: claim.spec?.selector ? labelSelectorFromObject(claim.spec.selector) : undefined,
  io: ioAmountsOf(claim.spec?.resources?.requests),
})

export const candidateOf = (volume: Volume): VolumeCandidate => ({
  className: volumeClassName(volume),
  attributesClass: volume.spec?.volumeAttributesClassName ?? '',
  volumeMode: volume.spec?.volumeMode ?? 'Filesystem',
  volume,
  size: sizeOf(volume.spec?.capacity),
  modes: accessModeBits(volume.spec?.accessModes),
  io: ioAmountsOf(volume.spec?.capacity),
})

const NO_IO: IoAmounts = { iops: undefined, throughput: undefined }

function ioAmountsOf(quantities: Readonly<Record<string, string>> | undefined): IoAmounts {
  const [iops, throughput] = [amountOf(quantities, 'iops'), amountOf(quantities, 'throughput')]
  if (iops === undefined && throughput === undefined) return NO_IO
  return {
    iops: iops !== undefined && isQuantity(iops) ? parseQuantity(iops).nanos : undefined,
    // API servers other than Stowage store the amount as the user wrote it.
    throughput:
      throughput !== undefined && isQuantity(throughput)
        ? parseQuantity(normalizeThroughput(throughput)).nanos
        : undefined,
  }
}

/** Returns an index key. A claim and a volume have the same key if their matched fields are equal. */
export const matchKey = ({ className, attributesClass, volumeMode }: MatchedFields): string =>
  `${className} ${attributesClass} ${volumeMode}`

/** Whether the volume's claimRef names this claim and, if it has a uid, this claim's uid. */
export function isReservedFor(
  { spec }: Readonly<PersistentVolume>,
  { metadata }: Pick<PersistentVolumeClaim, 'metadata'>,
): boolean {
  const reference = spec?.claimRef
  if (!reference || reference.name !== metadata.name || reference.namespace !== metadata.namespace) return false
  return !reference.uid || reference.uid === metadata.uid
}

/** Returns the key of the claim that the volume is bound to or reserved for. */
export const claimKeyOf = ({ spec }: Readonly<PersistentVolume>): ObjectKey | undefined =>
  spec?.claimRef ? `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}` : undefined

/**
 * The name and the function of the index of volumes by claimKeyOf. Controllers of a process share the cache of volumes, and so the
 * index, which takes 100 bytes per volume.
 */
export const VOLUMES_BY_CLAIM = 'volumes by claim'
export const claimKeysOf = (volume: Readonly<PersistentVolume>): ObjectKey[] => {
  const key = claimKeyOf(volume)
  return key === undefined ? [] : [key]
}

/** A bit set of access modes. */
export type AccessModes = number

const ACCESS_MODE_BITS: Readonly<Record<string, number>> = {
  ReadWriteOnce: 1,
  ReadOnlyMany: 2,
  ReadWriteMany: 4,
  ReadWriteOncePod: 8,
}

function accessModeBits(modes: readonly string[] = []): AccessModes {
  let bits = 0
  for (const mode of modes) bits |= ACCESS_MODE_BITS[mode] ?? 0
  return bits
}

export const includesModes = (modes: AccessModes, requested: AccessModes): boolean => (modes & requested) === requested

export const countModes = (modes: AccessModes): number =>
  (modes & 1) + ((modes >> 1) & 1) + ((modes >> 2) & 1) + ((modes >> 3) & 1)

const sizeOf = (quantities: Readonly<Record<string, string>> | undefined): bigint =>
  parseQuantity(quantities?.storage ?? '0').nanos
