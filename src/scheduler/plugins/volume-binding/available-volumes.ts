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
  type ClaimRequirements,
} from '../../../volumes/matching.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { getOrCreate } from '../../get-or-create.ts'

type Groups = Map<number, SortedList<VolumeCandidate>>

interface Shelf {
  readonly anywhere: Groups
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
  readonly #shelves = new Map<string, Shelf>()
  readonly #placed = new Map<string, { offer: VolumeCandidate; pins: readonly Pin[] }>()

  constructor(cache: Cache<PersistentVolume>) {
    this.#cache = cache
    cache.addIndex(BY_CLAIM, claimKeysOf)
  }

  put(volume: Volume): void {
    const { name = '' } = volume.metadata
    this.remove(name)
    if (!isAvailable(volume)) return
    const offer = candidateOf(volume)
    const pins = pinsOf(volume)
    this.#placed.set(name, { offer, pins })
    const id = matchKey(offer)
    const shelf = getOrCreate(this.#shelves, id, (): Shelf => ({ anywhere: new Map(), pinned: new Map(), size: 0 }))
    shelf.size++
    for (const groups of groupsOf(shelf, pins)) {
      getOrCreate(groups, offer.modes, () => new SortedList(bySize)).add(offer)
    }
  }

  remove(name: string): void {
    const known = this.#placed.get(name)
    if (!known) return
    this.#placed.delete(name)
    const id = matchKey(known.offer)
    const shelf = this.#shelves.get(id)
    if (!shelf) return
    for (const groups of groupsOf(shelf, known.pins)) groups.get(known.offer.modes)?.remove(known.offer)
    if (--shelf.size === 0) this.#shelves.delete(id)
  }

  /** Volumes whose claimRef names the claim. */
  reservedFor(claimKey: ObjectKey): readonly Volume[] {
    return this.#cache.byIndex(BY_CLAIM, claimKey)
  }

  /** Whether any volume of this class, attributes class and mode exists. */
  has(required: ClaimRequirements): boolean {
    return this.#shelves.has(matchKey(required))
  }

  /** The volumes that this node may reach. */
  from(node: NodeInfo): VolumeCandidates {
    return {
      reservedFor: (claimKey) => this.reservedFor(claimKey),
      groups: (required) => this.#groups(required, node),
    }
  }

  *#groups(required: ClaimRequirements, { labels }: NodeInfo): Generator<CandidateGroup> {
    const shelf = this.#shelves.get(matchKey(required))
    if (!shelf) return
    yield* fitting(shelf.anywhere, required)
    for (const [key, byValue] of shelf.pinned) {
      const here = labels[key] === undefined ? undefined : byValue.get(labels[key])
      if (here) yield* fitting(here, required)
    }
  }
}

function* fitting(groups: Groups, required: ClaimRequirements): Generator<CandidateGroup> {
  for (const [modes, group] of groups) {
    if (includesModes(modes, required.modes)) yield { modes, candidates: group.from(({ size }) => size >= required.size) }
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

function* groupsOf(shelf: Shelf, pins: readonly Pin[]): Generator<Groups> {
  if (pins.length === 0) yield shelf.anywhere
  for (const { key, value } of pins) {
    const byValue = getOrCreate(shelf.pinned, key, () => new Map<string, Groups>())
    yield getOrCreate(byValue, value, () => new Map())
  }
}

export const isAvailable = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
