// The free volumes on their shelves, so that a choice looks at those that fit and not at all. Fed by the cache.
// A volume that a worker is just binding is taken off the shelf until the cache shows how that went, so that two
// workers do not choose the same one.
//   shelf   class, attributes class, volume mode        group   a set of access modes, by size and then name
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { bySize, type VolumeCandidates } from '../../volumes/choose-volume.ts'
import {
  type AccessModes,
  candidateOf,
  claimKeyOf,
  includesModes,
  matchKey,
  type Volume,
  type VolumeCandidate,
} from '../../volumes/matching.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface VolumeIndex extends VolumeCandidates {
  /** The volume as it stands on its shelf, free for anyone. */
  candidate(name: string): VolumeCandidate | undefined
  /** Takes a volume off its shelf while it is being bound. */
  assume(name: string): void
  /** Its binding is saved or has failed: what the cache shows counts again. */
  release(name: string): void
  /** Follows the cache until the returned function is called. */
  follow(onOffered: (offer: VolumeCandidate) => void): () => void
}

const BY_CLAIM = 'binding/claim'
export const byClaim = (volume: Volume): string[] => {
  const key = claimKeyOf(volume)
  return key ? [key] : []
}

/** Holds a reference per volume of the cache, no more. */
export function createVolumeIndex(volumes: Cache<PersistentVolume>): VolumeIndex {
  volumes.addIndex(BY_CLAIM, byClaim)
  const candidates = new GroupedLists<AccessModes, VolumeCandidate>(bySize)
  const byName = new Map<string, VolumeCandidate>()
  const assumed = new Set<string>()
  let tell: (offer: VolumeCandidate) => void = () => {}

  function add(volume: Volume): void {
    const { name = '' } = volume.metadata
    remove(name)
    if (assumed.has(name) || !isFree(volume)) return
    const offer = candidateOf(volume)
    byName.set(name, offer)
    candidates.add(matchKey(offer), offer.modes, offer)
    tell(offer)
  }

  function remove(name: string): void {
    const offer = byName.get(name)
    if (!offer) return
    byName.delete(name)
    candidates.remove(matchKey(offer), offer.modes, offer)
  }

  return {
    reservedFor: (claimKey) => volumes.byIndex(BY_CLAIM, claimKey),
    *groups(wish) {
      for (const [modes, group] of candidates.groups(matchKey(wish))) {
        if (includesModes(modes, wish.modes)) yield { modes, candidates: group.from(({ size }) => size >= wish.size) }
      }
    },
    candidate: (name) => byName.get(name),
    assume(name) {
      assumed.add(name)
      remove(name)
    },
    release(name) {
      assumed.delete(name)
      const volume = volumes.get(name)
      if (volume) add(volume)
    },
    follow(onOffered) {
      tell = onOffered
      return volumes.subscribe({
        added: add,
        updated: add,
        deleted: ({ metadata: { name = '' } }) => remove(name),
      })
    },
  }
}

/** Nobody has it, nobody reserved it, and its own controller has said that it can be had. */
const isFree = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
