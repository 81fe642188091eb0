// The free volumes on their shelves, so that a choice looks at those that fit and not at all. Fed by the cache.
// A volume that a worker is just binding is taken off the shelf until the cache shows how that went, so that two
// workers do not choose the same one.
//   shelf   class, attributes class, volume mode        group   a set of access modes, by size and then name
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { bySize, type Shelves } from '../../volumes/choose-volume.ts'
import {
  type AccessModes,
  claimKeyOf,
  type Offer,
  offerOf,
  offersModes,
  shelfOf,
  type Volume,
} from '../../volumes/claim-requirements.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface VolumeIndex extends Shelves {
  /** The volume as it stands on its shelf, free for anyone. */
  offered(name: string): Offer | undefined
  /** Takes a volume off its shelf while it is being bound. */
  assume(name: string): void
  /** Its binding is saved or has failed: what the cache shows counts again. */
  settle(name: string): void
  /** Follows the cache until the returned function is called. */
  follow(onOffered: (offer: Offer) => void): () => void
}

const BY_CLAIM = 'binding/claim'
export const byClaim = (volume: Volume): string[] => {
  const key = claimKeyOf(volume)
  return key ? [key] : []
}

/** Holds a reference per volume of the cache, no more. */
export function createVolumeIndex(volumes: Cache<PersistentVolume>): VolumeIndex {
  volumes.addIndex(BY_CLAIM, byClaim)
  const shelves = new GroupedLists<AccessModes, Offer>(bySize)
  const placed = new Map<string, Offer>()
  const assumed = new Set<string>()
  let tell: (offer: Offer) => void = () => {}

  function place(volume: Volume): void {
    const { name = '' } = volume.metadata
    unplace(name)
    if (assumed.has(name) || !isFree(volume)) return
    const offer = offerOf(volume)
    placed.set(name, offer)
    shelves.add(shelfOf(offer), offer.modes, offer)
    tell(offer)
  }

  function unplace(name: string): void {
    const offer = placed.get(name)
    if (!offer) return
    placed.delete(name)
    shelves.remove(shelfOf(offer), offer.modes, offer)
  }

  return {
    reservedFor: (claimKey) => volumes.byIndex(BY_CLAIM, claimKey),
    *groups(wish) {
      for (const [modes, group] of shelves.groups(shelfOf(wish))) {
        if (offersModes(modes, wish.modes)) yield { modes, offers: group.from(({ size }) => size >= wish.size) }
      }
    },
    offered: (name) => placed.get(name),
    assume(name) {
      assumed.add(name)
      unplace(name)
    },
    settle(name) {
      assumed.delete(name)
      const volume = volumes.get(name)
      if (volume) place(volume)
    },
    follow(onOffered) {
      tell = onOffered
      return volumes.subscribe({
        added: place,
        updated: place,
        deleted: ({ metadata: { name = '' } }) => unplace(name),
      })
    },
  }
}

/** Nobody has it, nobody reserved it, and its own controller has said that it can be had. */
const isFree = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
