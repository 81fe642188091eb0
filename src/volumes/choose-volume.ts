// Chooses the volume that a claim binds to: a volume that is reserved for the claim, or the free volume with the smallest
// size, then the fewest access modes, then the first name. Pure.
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import { IO_RESOURCES } from '../api/kinds/shared/provisioned-io.ts'
import { matchesLabels } from '../api/selectors.ts'
import { isDeletionRequested } from './deletion-requested.ts'
import {
  type ClaimRequirements,
  candidateOf,
  countModes,
  includesModes,
  isReservedFor,
  type Volume,
  type VolumeCandidate,
} from './matching.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from './names.ts'
import { isReachableFrom, type NodeIdentity } from './node-affinity.ts'

/** An index of volumes that limits the number of volumes to examine. */
export interface VolumeCandidates {
  /** Returns all volumes whose claimRef has the namespace and name of this claim. */
  reservedFor(claimKey: string): readonly Volume[]
  /** Returns the free volumes that are large enough and equal in all matched fields, grouped by access modes. */
  groups(requirements: ClaimRequirements): Iterable<CandidateGroup>
}

export interface CandidateGroup {
  readonly modes: number
  /** The candidates in order of size, then name. */
  readonly candidates: Iterable<VolumeCandidate>
}

export interface ChooseOptions {
  /** Whether the class has WaitForFirstConsumer. If it has, only a reserved volume is chosen without a node. */
  readonly isDelayed?: boolean
  readonly node?: NodeIdentity
  /** Names of volumes that must not be chosen. */
  readonly excluded?: ReadonlySet<string>
}

export function chooseVolume(
  claim: Readonly<PersistentVolumeClaim>,
  requirements: ClaimRequirements,
  candidates: VolumeCandidates,
  options: ChooseOptions = {},
): Volume | undefined {
  const { node, excluded, isDelayed = false } = options
  const reservedCandidate = candidates
    .reservedFor(requirements.claimKey)
    .filter((volume) => isReservedFor(volume, claim) && !excluded?.has(volume.metadata.name))
    .map(candidateOf)
    .filter((candidate) => mismatchReason(candidate, requirements, { isReserved: true }) === undefined)
    .sort(byReservation)[0]
  if (reservedCandidate) {
    // The reserved volume may contain the claim's data, so a free volume that the node can reach cannot replace it.
    return node && !isReachableFrom(reservedCandidate.volume, node) ? undefined : reservedCandidate.volume
  }
  if (isDelayed && !node) return undefined
  return findBestFreeVolume(requirements, candidates, options)?.volume
}

export const STORAGE_BEING_DELETED = 'its storage is being deleted'

/** Whether a free volume meets the requirements, regardless of nodes. */
export const meetsRequirements = (candidate: VolumeCandidate, requirements: ClaimRequirements): boolean =>
  mismatchReason(candidate, requirements) === undefined &&
  (!requirements.selector || matchesLabels(requirements.selector, candidate.volume.metadata.labels))

/**
 * Returns why a volume cannot be bound to the claim, in the words of the event. Does not check the selector,
 * because a user may name a volume that the selector does not match. For a reserved volume, isReservedClassMismatch
 * compares the classes.
 */
export function mismatchReason(
  candidate: VolumeCandidate,
  requirements: ClaimRequirements,
  { isReserved = false } = {},
): string | undefined {
  const { metadata } = candidate.volume
  if (isDeletionRequested(candidate.volume)) return STORAGE_BEING_DELETED
  if (metadata.deletionTimestamp && !(isReserved && isBoundToUid(candidate.volume)))
    return `the volume is marked for deletion ${JSON.stringify(metadata.name)}`
  if (candidate.size < requirements.size) return 'requested PV is too small'
  for (const name of IO_RESOURCES) {
    const [capacity, request] = [candidate.io[name], requirements.io[name]]
    if (capacity !== undefined && request !== undefined && capacity < request)
      return `requested PV provides less ${name}`
  }
  const isClassMismatch = isReserved
    ? isReservedClassMismatch(candidate, requirements)
    : candidate.className !== requirements.className
  if (isClassMismatch) return CLASS_MISMATCH
  if (
    candidate.attributesClass !== requirements.attributesClass &&
    !(isReserved && isProvisionedWithoutAttributes(candidate))
  ) {
    return 'volumeAttributesClassName does not match'
  }
  if (candidate.volumeMode !== requirements.volumeMode) return 'incompatible volumeMode'
  if (!includesModes(candidate.modes, requirements.modes)) return 'incompatible accessMode'
  return undefined
}

export const CLASS_MISMATCH = 'storageClassName does not match'

/**
 * Whether the class of a reserved volume prevents the binding: the claim names a class and the volume has none. Returns
 * false for a volume that a controller chose: it matched when the binding started, and the claim received its class later.
 */
export const isReservedClassMismatch = (
  { className, volume }: VolumeCandidate,
  requirements: ClaimRequirements,
): boolean =>
  className === '' && requirements.className !== '' && annotationOf(volume, BOUND_BY_CONTROLLER) === undefined

/**
 * Whether the volume is Bound and its claimRef has a uid. Its protection finalizer prevents its removal while it is bound,
 * so the binding can be completed.
 */
const isBoundToUid = ({ spec, status }: Volume): boolean => Boolean(spec?.claimRef?.uid) && status?.phase === 'Bound'

/** Whether the volume was provisioned for the claim and has no attributes class. */
const isProvisionedWithoutAttributes = ({ attributesClass, volume }: VolumeCandidate): boolean =>
  attributesClass === '' &&
  volume.spec?.claimRef?.uid !== undefined &&
  annotationOf(volume, PROVISIONED_BY) !== undefined

function findBestFreeVolume(
  requirements: ClaimRequirements,
  candidates: VolumeCandidates,
  { node, excluded }: ChooseOptions,
): VolumeCandidate | undefined {
  let best: VolumeCandidate | undefined
  for (const group of candidates.groups(requirements)) {
    for (const candidate of group.candidates) {
      if (best && byFit(best, candidate) < 0) break // the remaining candidates of this group fit no better
      if (excluded?.has(candidate.volume.metadata.name) || !meetsRequirements(candidate, requirements)) continue
      if (node && !isReachableFrom(candidate.volume, node)) continue
      best = candidate
      break
    }
  }
  return best
}

/** Sorts volumes whose claimRef has the claim's uid first. */
const byReservation = (a: VolumeCandidate, b: VolumeCandidate): number =>
  Number(Boolean(b.volume.spec?.claimRef?.uid)) - Number(Boolean(a.volume.spec?.claimRef?.uid)) || byFit(a, b)

/** Compares by size, then number of access modes, then name. Orders volumes with the same access modes as `bySize` does. */
function byFit(a: VolumeCandidate, b: VolumeCandidate): number {
  if (a.size !== b.size) return a.size < b.size ? -1 : 1
  return countModes(a.modes) - countModes(b.modes) || byName(a, b)
}

/** Compares by size, then name. */
export function bySize(a: VolumeCandidate, b: VolumeCandidate): number {
  if (a.size !== b.size) return a.size < b.size ? -1 : 1
  return byName(a, b)
}

function byName(a: VolumeCandidate, b: VolumeCandidate): number {
  const [firstName, secondName] = [a.volume.metadata.name, b.volume.metadata.name]
  return firstName < secondName ? -1 : firstName > secondName ? 1 : 0
}
