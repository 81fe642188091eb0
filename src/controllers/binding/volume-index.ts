// Indexes the free volumes of the cache by class, attributes class and volume mode (matchKey), then by access modes: a
// claim is compared only with volumes that can match. Each group is sorted by size and name. A volume that a worker is
// binding is not in the index, which prevents two workers from choosing it.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { bySize, type VolumeCandidates } from '../../volumes/choose-volume.ts'
import {
  type AccessModes,
  candidateOf,
  claimKeysOf,
  includesModes,
  matchKey,
  VOLUMES_BY_CLAIM,
  type Volume,
  type VolumeCandidate,
} from '../../volumes/matching.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface VolumeIndex extends VolumeCandidates {
  /** Returns undefined if the volume is not free. */
  candidate(name: string): VolumeCandidate | undefined
  /** Removes the volume from the index while it is being bound. */
  assume(name: string): void
  /** Indexes the volume again as it is in the cache, after the binding was saved or has failed. */
  release(name: string): void
  /** Follows the cache and calls `onCandidate` for each free volume, until the returned function is called. */
  follow(onCandidate: (candidate: VolumeCandidate) => void): () => void
}

/** Bounded by the number of volumes in the cache. */
export function createVolumeIndex(volumes: Cache<PersistentVolume>): VolumeIndex {
  volumes.addIndex(VOLUMES_BY_CLAIM, claimKeysOf)
  const candidates = new GroupedLists<AccessModes, VolumeCandidate>(bySize)
  const candidatesByName = new Map<string, VolumeCandidate>()
  const assumedNames = new Set<string>()
  let notify: (candidate: VolumeCandidate) => void = () => {}

  function add(volume: Volume): void {
    const { name } = volume.metadata
    remove(name)
    if (assumedNames.has(name) || !isFree(volume)) return
    const candidate = candidateOf(volume)
    candidatesByName.set(name, candidate)
    candidates.add(matchKey(candidate), candidate.modes, candidate)
    notify(candidate)
  }

  function remove(name: string): void {
    const candidate = candidatesByName.get(name)
    if (!candidate) return
    candidatesByName.delete(name)
    candidates.remove(matchKey(candidate), candidate.modes, candidate)
  }

  return {
    reservedFor: (claimKey) => volumes.byIndex(VOLUMES_BY_CLAIM, claimKey),
    *groups(requirements) {
      for (const [modes, group] of candidates.groups(matchKey(requirements))) {
        if (includesModes(modes, requirements.modes))
          yield { modes, candidates: group.itemsFrom(({ size }) => size >= requirements.size) }
      }
    },
    candidate: (name) => candidatesByName.get(name),
    assume(name) {
      assumedNames.add(name)
      remove(name)
    },
    release(name) {
      assumedNames.delete(name)
      const volume = volumes.get(name)
      if (volume) add(volume)
    },
    follow(onCandidate) {
      notify = onCandidate
      return volumes.subscribe({ added: add, updated: add, deleted: ({ metadata }) => remove(metadata.name) })
    },
  }
}

/** Whether the volume is Available, not reserved and not being deleted. */
const isFree = ({ metadata, spec, status }: Volume): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp
