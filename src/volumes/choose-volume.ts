// Chooses the volume a claim gets: one that is reserved for it, else the one with the fewest access modes beyond those
// asked for, of these the smallest, of these the first by name. The binder asks for no node in particular; a scheduler
// asks for one node at a time and excludes what it has promised to other claims of the same pod.
// Pure: volume-index.ts keeps the shelves, bind-claim.ts saves the choice.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import { matchesLabels } from '../api/selectors.ts'
import { isDeletionRequested } from './deletion-requested.ts'
import {
  type Claim,
  type ClaimRequirements,
  candidateOf,
  countModes,
  includesModes,
  isReservedFor,
  type Volume,
  type VolumeCandidate,
} from './matching.ts'
import { PROVISIONED_BY } from './names.ts'
import { isReachableFrom, type NodeFacts } from './node-affinity.ts'

/** Volumes, arranged so that a choice looks at few of them. */
export interface VolumeCandidates {
  /** Those whose claimRef names this claim, whatever else they are. */
  reservedFor(claimKey: string): readonly Volume[]
  /** The free ones on the wish's shelf that are large enough, by set of access modes; each by size, then name. */
  groups(wish: ClaimRequirements): Iterable<CandidateGroup>
}

export interface CandidateGroup {
  readonly modes: number
  readonly candidates: Iterable<VolumeCandidate>
}

export interface ChooseOptions {
  /** The claim waits for a pod: only a volume that is reserved for it will do. Means nothing where a node is given. */
  readonly isDelayed?: boolean
  readonly node?: NodeFacts
  /** Names of volumes that are spoken for. */
  readonly excluded?: ReadonlySet<string>
}

export function chooseVolume(
  claim: Claim,
  wish: ClaimRequirements,
  shelves: VolumeCandidates,
  choosing: ChooseOptions = {},
): Volume | undefined {
  const { node, excluded, isDelayed = false } = choosing
  const reserved = shelves
    .reservedFor(wish.claimKey)
    .filter((volume) => isReservedFor(volume, claim) && !excluded?.has(volume.metadata.name ?? ''))
    .map(candidateOf)
    .filter((offer) => mismatchReason(offer, wish, { isReserved: true }) === undefined)
    .sort(byCommitment)[0]
  if (reserved) {
    // The claim's data is there, so a node that cannot reach it is no node for the claim, whatever else is free.
    return node && !isReachableFrom(reserved.volume, node) ? undefined : reserved.volume
  }
  if (isDelayed && !node) return undefined
  return bestFree(wish, shelves, choosing)?.volume
}

/** It may be gone by now. */
export const STORAGE_BEING_DELETED = 'its storage is being deleted'

/** Whether a volume that nobody has will do, wherever it is. */
export const satisfies = (offer: VolumeCandidate, wish: ClaimRequirements): boolean =>
  mismatchReason(offer, wish) === undefined &&
  (!wish.selector || matchesLabels(wish.selector, offer.volume.metadata.labels))

/**
 * Why a volume cannot be the claim's, in the words people are told. Labels do not count here: whoever says which
 * volume it is to be need not describe it. Of what class a volume is does not count where it was reserved for the claim.
 */
export function mismatchReason(
  offer: VolumeCandidate,
  wish: ClaimRequirements,
  { isReserved = false } = {},
): string | undefined {
  const { metadata } = offer.volume
  if (isDeletionRequested(offer.volume)) return STORAGE_BEING_DELETED
  if (metadata.deletionTimestamp && !(isReserved && isHalfBound(offer.volume)))
    return `the volume is marked for deletion ${JSON.stringify(metadata.name)}`
  if (offer.size < wish.size) return 'requested PV is too small'
  if (!isReserved && offer.className !== wish.className) return 'storageClassName does not match'
  if (offer.attributesClass !== wish.attributesClass && !(isReserved && isProvisionedWithoutAttributes(offer))) {
    return 'volumeAttributesClassName does not match'
  }
  if (offer.volumeMode !== wish.volumeMode) return 'incompatible volumeMode'
  if (!includesModes(offer.modes, wish.modes)) return 'incompatible accessMode'
  return undefined
}

/** It was bound from its side before it was deleted, and is protected: the claim's side follows. */
const isHalfBound = ({ spec, status }: Volume): boolean => Boolean(spec?.claimRef?.uid) && status?.phase === 'Bound'

/** By a provisioner for this very claim, while it knew of no attributes: bound first, it is given them afterwards. */
const isProvisionedWithoutAttributes = ({ attributesClass, volume }: VolumeCandidate): boolean =>
  attributesClass === '' &&
  volume.spec?.claimRef?.uid !== undefined &&
  annotationOf(volume, PROVISIONED_BY) !== undefined

function bestFree(
  wish: ClaimRequirements,
  shelves: VolumeCandidates,
  { node, excluded }: ChooseOptions,
): VolumeCandidate | undefined {
  let best: VolumeCandidate | undefined
  for (const { candidates } of shelves.groups(wish)) {
    for (const offer of candidates) {
      if (best && byFit(best, offer) < 0) break // the rest of this group is larger still
      if (excluded?.has(offer.volume.metadata.name ?? '') || !satisfies(offer, wish)) continue
      if (node && !isReachableFrom(offer.volume, node)) continue
      best = offer
      break
    }
  }
  return best
}

/** One that already has the claim's uid is further along than one that only has its name. */
const byCommitment = (a: VolumeCandidate, b: VolumeCandidate): number =>
  Number(Boolean(b.volume.spec?.claimRef?.uid)) - Number(Boolean(a.volume.spec?.claimRef?.uid)) || byFit(a, b)

const byFit = (a: VolumeCandidate, b: VolumeCandidate): number =>
  countModes(a.modes) - countModes(b.modes) || bySize(a, b)

export function bySize(a: VolumeCandidate, b: VolumeCandidate): number {
  if (a.size !== b.size) return a.size < b.size ? -1 : 1
  const [first = '', second = ''] = [a.volume.metadata.name, b.volume.metadata.name]
  return first < second ? -1 : first > second ? 1 : 0
}
