// Indexes the Available volumes without a claimRef by the nodes that can reach them. Volumes whose node affinity requires
// label values, such as local volumes, are pinned: they are indexed under these values. All others are candidates for every
// node.

import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { SortedList } from '../../../base/sorted-list.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import { bySize, type CandidateGroup, type VolumeCandidates } from '../../../volumes/choose-volume.ts'
import {
  type ClaimRequirements,
  candidateOf,
  claimKeysOf,
  includesModes,
  matchKey,
  VOLUMES_BY_CLAIM,
  type Volume,
  type VolumeCandidate,
} from '../../../volumes/matching.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { getOrCreate } from '../../get-or-create.ts'

/** Candidates by access modes. */
type Groups = Map<number, SortedList<VolumeCandidate>>

/** Volumes with the same matchKey. */
interface Bucket {
  readonly unpinned: Groups
  /** Groups by label key and value. */
  readonly pinned: Map<string, Map<string, Groups>>
  size: number
}

export class AvailableVolumes {
  readonly #cache: Cache<PersistentVolume>
  readonly #buckets = new Map<string, Bucket>()
  readonly #indexedVolumes = new Map<string, { candidate: VolumeCandidate; pins: readonly Pin[] }>()

  constructor(cache: Cache<PersistentVolume>) {
    this.#cache = cache
    cache.addIndex(VOLUMES_BY_CLAIM, claimKeysOf)
  }

  put(volume: Volume): void {
    const { name = '' } = volume.metadata
    this.remove(name)
    if (!isAvailable(volume)) return
    const candidate = candidateOf(volume)
    const pins = listPins(volume)
    this.#indexedVolumes.set(name, { candidate, pins })
    const createBucket = (): Bucket => ({ unpinned: new Map(), pinned: new Map(), size: 0 })
    const bucket = getOrCreate(this.#buckets, matchKey(candidate), createBucket)
    bucket.size++
    for (const groups of getOrCreateGroups(bucket, pins)) {
      getOrCreate(groups, candidate.modes, () => new SortedList(bySize)).add(candidate)
    }
  }

  remove(name: string): void {
    const indexedVolume = this.#indexedVolumes.get(name)
    if (!indexedVolume) return
    this.#indexedVolumes.delete(name)
    const { candidate, pins } = indexedVolume
    const key = matchKey(candidate)
    const bucket = this.#buckets.get(key)
    if (!bucket) return
    for (const groups of getOrCreateGroups(bucket, pins)) groups.get(candidate.modes)?.remove(candidate)
    if (--bucket.size === 0) this.#buckets.delete(key)
  }

  /** Returns the volumes whose claimRef names the claim. */
  reservedFor(claimKey: ObjectKey): readonly Volume[] {
    return this.#cache.byIndex(VOLUMES_BY_CLAIM, claimKey)
  }

  /** Whether a volume of this storage class, attributes class and volume mode is available. */
  has(requirements: ClaimRequirements): boolean {
    return this.#buckets.has(matchKey(requirements))
  }

  /** Returns the volumes that the node may be able to reach. */
  candidatesFor(node: NodeInfo): VolumeCandidates {
    return {
      reservedFor: (claimKey) => this.reservedFor(claimKey),
      groups: (requirements) => this.#groups(requirements, node),
    }
  }

  *#groups(requirements: ClaimRequirements, { labels }: NodeInfo): Generator<CandidateGroup> {
    const bucket = this.#buckets.get(matchKey(requirements))
    if (!bucket) return
    yield* matchingGroups(bucket.unpinned, requirements)
    for (const [key, byValue] of bucket.pinned) {
      const groups = labels[key] === undefined ? undefined : byValue.get(labels[key])
      if (groups) yield* matchingGroups(groups, requirements)
    }
  }
}

function* matchingGroups(groups: Groups, required: ClaimRequirements): Generator<CandidateGroup> {
  for (const [modes, group] of groups) {
    if (includesModes(modes, required.modes))
      yield { modes, candidates: group.itemsFrom(({ size }) => size >= required.size) }
  }
}

interface Pin {
  readonly key: string
  readonly value: string
}

/**
 * Returns label values of which every node that can reach the volume has at least one. Returns none if a term requires no
 * label value: the volume is then a candidate for every node.
 */
function listPins({ spec }: Volume): readonly Pin[] {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms
  if (!terms) return []
  const pins: Pin[] = []
  for (const { matchExpressions = [] } of terms) {
    const expression = matchExpressions.find(({ operator, values }) => operator === 'In' && values?.length)
    if (!expression) return []
    for (const value of expression.values ?? []) pins.push({ key: expression.key, value })
  }
  const distinct = new Map(pins.map((pin) => [`${pin.key}=${pin.value}`, pin]))
  return [...distinct.values()]
}

function* getOrCreateGroups(bucket: Bucket, pins: readonly Pin[]): Generator<Groups> {
  if (pins.length === 0) yield bucket.unpinned
  for (const { key, value } of pins) {
    const byValue = getOrCreate(bucket.pinned, key, () => new Map<string, Groups>())
    yield getOrCreate(byValue, value, () => new Map())
  }
}

export const isAvailable = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
