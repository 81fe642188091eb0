// Existing volumes without a claim, indexed so that a search for one node looks only at volumes it may reach. Local
// volumes are pinned to their node by a label and found under its value; all others are found from every node.

import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { SortedList } from '../../../base/sorted-list.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import { bySize, type CandidateGroup, type VolumeCandidates } from '../../../volumes/choose-volume.ts'
import {
  type ClaimRequirements,
  candidateOf,
  claimKeyOf,
  includesModes,
  matchKey,
  type Volume,
  type VolumeCandidate,
} from '../../../volumes/matching.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { getOrCreate } from '../../get-or-create.ts'

/** By access modes. */
type Groups = Map<number, SortedList<VolumeCandidate>>

/** Volumes with the same matchKey. */
interface Bucket {
  readonly unpinned: Groups
  readonly pinned: Map<string, Map<string, Groups>> // label key → value → groups
  size: number
}

const BY_CLAIM = 'scheduler/claim'
const claimKeysOf = (volume: Volume): string[] => {
  const key = claimKeyOf(volume)
  return key ? [key] : []
}

export class AvailableVolumes {
  readonly #cache: Cache<PersistentVolume>
  readonly #buckets = new Map<string, Bucket>()
  readonly #entries = new Map<string, { candidate: VolumeCandidate; pins: readonly Pin[] }>()

  constructor(cache: Cache<PersistentVolume>) {
    this.#cache = cache
    cache.addIndex(BY_CLAIM, claimKeysOf)
  }

  put(volume: Volume): void {
    const { name = '' } = volume.metadata
    this.remove(name)
    if (!isAvailable(volume)) return
    const candidate = candidateOf(volume)
    const pins = pinsOf(volume)
    this.#entries.set(name, { candidate, pins })
    const empty = (): Bucket => ({ unpinned: new Map(), pinned: new Map(), size: 0 })
    const bucket = getOrCreate(this.#buckets, matchKey(candidate), empty)
    bucket.size++
    for (const groups of groupsOf(bucket, pins)) {
      getOrCreate(groups, candidate.modes, () => new SortedList(bySize)).add(candidate)
    }
  }

  remove(name: string): void {
    const known = this.#entries.get(name)
    if (!known) return
    this.#entries.delete(name)
    const { candidate, pins } = known
    const key = matchKey(candidate)
    const bucket = this.#buckets.get(key)
    if (!bucket) return
    for (const groups of groupsOf(bucket, pins)) groups.get(candidate.modes)?.remove(candidate)
    if (--bucket.size === 0) this.#buckets.delete(key)
  }

  /** Volumes whose claimRef names the claim. */
  reservedFor(claimKey: ObjectKey): readonly Volume[] {
    return this.#cache.byIndex(BY_CLAIM, claimKey)
  }

  /** Whether any volume of this class, attributes class and volume mode exists. */
  has(requirements: ClaimRequirements): boolean {
    return this.#buckets.has(matchKey(requirements))
  }

  /** The volumes that this node may reach. */
  from(node: NodeInfo): VolumeCandidates {
    return {
      reservedFor: (claimKey) => this.reservedFor(claimKey),
      groups: (requirements) => this.#groups(requirements, node),
    }
  }

  *#groups(requirements: ClaimRequirements, { labels }: NodeInfo): Generator<CandidateGroup> {
    const bucket = this.#buckets.get(matchKey(requirements))
    if (!bucket) return
    yield* matching(bucket.unpinned, requirements)
    for (const [key, byValue] of bucket.pinned) {
      const here = labels[key] === undefined ? undefined : byValue.get(labels[key])
      if (here) yield* matching(here, requirements)
    }
  }
}

function* matching(groups: Groups, required: ClaimRequirements): Generator<CandidateGroup> {
  for (const [modes, group] of groups) {
    if (includesModes(modes, required.modes))
      yield { modes, candidates: group.from(({ size }) => size >= required.size) }
  }
}

interface Pin {
  readonly key: string
  readonly value: string
}

/** One label value per term, so that every node that reaches the volume has one of them. None: indexed for every node. */
function pinsOf({ spec }: Volume): readonly Pin[] {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms
  if (!terms) return []
  const pins: Pin[] = []
  for (const { matchExpressions = [] } of terms) {
    const named = matchExpressions.find(({ operator, values }) => operator === 'In' && values?.length)
    if (!named) return []
    for (const value of named.values ?? []) pins.push({ key: named.key, value })
  }
  const distinct = new Map(pins.map((pin) => [`${pin.key}=${pin.value}`, pin]))
  return [...distinct.values()]
}

function* groupsOf(bucket: Bucket, pins: readonly Pin[]): Generator<Groups> {
  if (pins.length === 0) yield bucket.unpinned
  for (const { key, value } of pins) {
    const byValue = getOrCreate(bucket.pinned, key, () => new Map<string, Groups>())
    yield getOrCreate(byValue, value, () => new Map())
  }
}

export const isAvailable = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
