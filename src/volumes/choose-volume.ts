// Chooses the volume that a claim binds to: one that is reserved for it, else the free volume with the fewest access
// modes beyond those requested, then the smallest, then the first by name. The binder passes no node; the scheduler
// passes one node at a time and excludes volumes it has assigned to other claims of the same pod.
// Pure. Candidates come from controllers/binding/volume-index.ts or the scheduler's own index; controllers/binding/
// bind-claim.ts writes the binding.
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../api/kinds/shared/class-names.ts'
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
import { PROVISIONED_BY } from './names.ts'
import { isReachableFrom, type NodeIdentity } from './node-affinity.ts'

/** Volumes, indexed so that a choice examines few of them. */
export interface VolumeCandidates {
  /** All volumes whose claimRef names this claim. */
  reservedFor(claimKey: string): readonly Volume[]
  /** Free volumes that are large enough and equal in all matched fields, grouped by access modes. */
  groups(requirements: ClaimRequirements): Iterable<CandidateGroup>
}

export interface CandidateGroup {
  readonly modes: number
  /** By size, then name. */
  readonly candidates: Iterable<VolumeCandidate>
}

export interface ChooseOptions {
  /** The class is WaitForFirstConsumer: without a node, only a reserved volume is chosen. */
  readonly isDelayed?: boolean
  readonly node?: NodeIdentity
  /** Names of volumes that are assigned to other claims. */
  readonly excluded?: ReadonlySet<string>
}

export function chooseVolume(
  claim: Readonly<PersistentVolumeClaim>,
  requirements: ClaimRequirements,
  candidates: VolumeCandidates,
  options: ChooseOptions = {},
): Volume | undefined {
  const { node, excluded, isDelayed = false } = options
  const reserved = candidates
    .reservedFor(requirements.claimKey)
    .filter((volume) => isReservedFor(volume, claim) && !excluded?.has(volume.metadata.name))
    .map(candidateOf)
    .filter((candidate) => mismatchReason(candidate, requirements, { isReserved: true }) === undefined)
    .sort(byReservation)[0]
  if (reserved) {
    // The claim's data may be on it, so a free volume elsewhere is no substitute for a node that cannot reach it.
    return node && !isReachableFrom(reserved.volume, node) ? undefined : reserved.volume
  }
  if (isDelayed && !node) return undefined
  return bestFree(requirements, candidates, options)?.volume
}

export const STORAGE_BEING_DELETED = 'its storage is being deleted'

/** Whether a free volume meets the requirements, regardless of nodes. */
export const satisfies = (candidate: VolumeCandidate, requirements: ClaimRequirements): boolean =>
  mismatchReason(candidate, requirements) === undefined &&
  (!requirements.selector || matchesLabels(requirements.selector, candidate.volume.metadata.labels))

/**
 * Why a volume cannot be bound to the claim, as events say it. The selector is not checked: a user who names the volume
 * need not select it too. The class of a reserved volume may differ.
 */
export function mismatchReason(
  candidate: VolumeCandidate,
  requirements: ClaimRequirements,
  { isReserved = false } = {},
): string | undefined {
  const { metadata } = candidate.volume
  if (isDeletionRequested(candidate.volume)) return STORAGE_BEING_DELETED
  if (metadata.deletionTimestamp && !(isReserved && isHalfBound(candidate.volume)))
    return `the volume is marked for deletion ${JSON.stringify(metadata.name)}`
  if (candidate.size < requirements.size) return 'requested PV is too small'
  if (!isReserved && candidate.className !== requirements.className) return 'storageClassName does not match'
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

/** Bound on the volume's side before it was deleted. Its protection finalizer keeps it until the claim's side is bound. */
const isHalfBound = ({ spec, status }: Volume): boolean => Boolean(spec?.claimRef?.uid) && status?.phase === 'Bound'

/** Provisioned for this claim without an attributes class: it is bound first, and modified to the class afterwards. */
const isProvisionedWithoutAttributes = ({ attributesClass, volume }: VolumeCandidate): boolean =>
  attributesClass === '' &&
  volume.spec?.claimRef?.uid !== undefined &&
  annotationOf(volume, PROVISIONED_BY) !== undefined

function bestFree(
  requirements: ClaimRequirements,
  candidates: VolumeCandidates,
  { node, excluded }: ChooseOptions,
): VolumeCandidate | undefined {
  let best: VolumeCandidate | undefined
  for (const group of candidates.groups(requirements)) {
    for (const candidate of group.candidates) {
      if (best && byFit(best, candidate) < 0) break // the rest of this group is larger
      if (excluded?.has(candidate.volume.metadata.name) || !satisfies(candidate, requirements)) continue
      if (node && !isReachableFrom(candidate.volume, node)) continue
      best = candidate
      break
    }
  }
  return best
}

/** A claimRef with the claim's uid comes before one with only its name: that binding has already started. */
const byReservation = (a: VolumeCandidate, b: VolumeCandidate): number =>
  Number(Boolean(b.volume.spec?.claimRef?.uid)) - Number(Boolean(a.volume.spec?.claimRef?.uid)) || byFit(a, b)

const byFit = (a: VolumeCandidate, b: VolumeCandidate): number =>
  countModes(a.modes) - countModes(b.modes) || bySize(a, b)

export function bySize(a: VolumeCandidate, b: VolumeCandidate): number {
  if (a.size !== b.size) return a.size < b.size ? -1 : 1
  const [first, second] = [a.volume.metadata.name, b.volume.metadata.name]
  return first < second ? -1 : first > second ? 1 : 0
}
