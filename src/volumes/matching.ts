// A claim and a volume, each reduced to what matching compares: what is wished for, and what is on offer. Amounts are
// exact; access modes are sets of bits, so that "offers all that is asked" is one comparison.

import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { parseQuantity } from '../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject } from '../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'

export type Claim = Readonly<PersistentVolumeClaim>
export type Volume = Readonly<PersistentVolume>

/** What must be the same on both sides. */
export interface MatchedFields {
  readonly className: string
  /** No attributes class and the empty one are the same. */
  readonly attributesClass: string
  readonly volumeMode: string
}

export interface ClaimRequirements extends MatchedFields {
  readonly claimKey: ObjectKey
  /** In billionths, as quantities count. */
  readonly size: bigint
  readonly modes: AccessModes
  readonly selector: LabelSelector | undefined
}

export interface VolumeCandidate extends MatchedFields {
  readonly volume: Volume
  readonly size: bigint
  readonly modes: AccessModes
}

export const requirementsOf = (claim: Claim): ClaimRequirements => ({
  ...matchedFields(claimClassName(claim) ?? '', claim.spec),
  claimKey: keyOfObject(claim),
  size: sizeOf(claim.spec?.resources?.requests),
  modes: accessModes(claim.spec?.accessModes),
  selector: claim.spec?.selector ? labelSelectorFromObject(claim.spec.selector) : undefined,
})

export const candidateOf = (volume: Volume): VolumeCandidate => ({
  ...matchedFields(volumeClassName(volume), volume.spec),
  volume,
  size: sizeOf(volume.spec?.capacity),
  modes: accessModes(volume.spec?.accessModes),
})

const matchedFields = (className: string, spec: Claim['spec'] | Volume['spec'] = {}): MatchedFields => ({
  className,
  attributesClass: spec.volumeAttributesClassName ?? '',
  volumeMode: spec.volumeMode ?? 'Filesystem',
})

/** What is of one sort stands together. */
export const matchKey = ({ className, attributesClass, volumeMode }: MatchedFields): string =>
  `${className} ${attributesClass} ${volumeMode}`

/** Whether the volume is for this claim by name and, where it gives one, by uid. */
export function isReservedFor({ spec }: Volume, { metadata }: Claim): boolean {
  const reference = spec?.claimRef
  if (!reference || reference.name !== metadata.name || reference.namespace !== metadata.namespace) return false
  return !reference.uid || reference.uid === metadata.uid
}

/** The claim a volume belongs to or is reserved for. */
export const claimKeyOf = ({ spec }: Volume): ObjectKey | undefined =>
  spec?.claimRef ? `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}` : undefined

export type AccessModes = number

const BITS: Readonly<Record<string, number>> = {
  ReadWriteOnce: 1,
  ReadOnlyMany: 2,
  ReadWriteMany: 4,
  ReadWriteOncePod: 8,
}

const accessModes = (modes: readonly string[] = []): AccessModes =>
  modes.reduce((all, mode) => all | (BITS[mode] ?? 0), 0)

export const includesModes = (offered: AccessModes, wanted: AccessModes): boolean => (offered & wanted) === wanted

export const countModes = (modes: AccessModes): number =>
  (modes & 1) + ((modes >> 1) & 1) + ((modes >> 2) & 1) + ((modes >> 3) & 1)

const sizeOf = (amounts: Readonly<Record<string, string>> | undefined): bigint =>
  parseQuantity(amounts?.storage ?? '0').nanos
