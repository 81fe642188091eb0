// What the store holds now, for users who wait for something and checkers who judge: claims and volumes, kept up to
// date commit by commit, over every life of the server. Reads the store alone, and nothing that a controller says.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { collectionPrefix, decodeStored } from '../../apiserver/index.ts'
import type { Cluster } from '../cluster.ts'
import { followStore, type Stored } from './follow-store.ts'

export type Claim = Readonly<PersistentVolumeClaim>
export type Volume = Readonly<PersistentVolume>

export interface StoreView {
  /** By `namespace/name`. */
  readonly claims: ReadonlyMap<string, Claim>
  readonly volumes: ReadonlyMap<string, Volume>
  /** Every claim there ever was, `namespace/name` by uid. */
  readonly claimNames: ReadonlyMap<string, string>
  /** When a claim or volume last changed, by the world's time. */
  readonly changedMs: number
  /** Called after each commit that changed some, or several that became visible together. */
  onCommit(check: (changes: readonly Change[]) => void): void
}

/** What became of one object. */
export interface Change {
  readonly of: 'claim' | 'volume'
  readonly old: Claim | Volume | undefined
  readonly next: Claim | Volume | undefined
}

/** All claims and volumes are under it, so that a commit that changes both arrives whole. */
const WATCHED = 'core/'
const CLAIMS = collectionPrefix(persistentVolumeClaimKind)
const VOLUMES = collectionPrefix(persistentVolumeKind)

export function createStoreView(cluster: Cluster): StoreView {
  const claims = new Map<string, Claim>()
  const volumes = new Map<string, Volume>()
  const claimNames = new Map<string, string>()
  const checks: ((changes: readonly Change[]) => void)[] = []
  let changedMs = cluster.world.nowMs

  function take(states: readonly Stored[]): void {
    const changes = states.flatMap((state): Change[] => {
      if (state.key.startsWith(CLAIMS)) return changeOf('claim', claims, state.key.slice(CLAIMS.length), state)
      if (state.key.startsWith(VOLUMES)) return changeOf('volume', volumes, state.key.slice(VOLUMES.length), state)
      return []
    })
    if (changes.length === 0) return
    changedMs = cluster.world.nowMs
    const whole = joined(changes)
    for (const check of checks) check(whole)
  }

  function changeOf<T extends Claim | Volume>(
    of: Change['of'],
    known: Map<string, T>,
    key: string,
    state: Stored,
  ): Change[] {
    const old = known.get(key)
    if (state.value === undefined) {
      known.delete(key)
      return old ? [{ of, old, next: undefined }] : []
    }
    if (old?.metadata.resourceVersion === String(state.revision)) return []
    const next = decodeStored({ value: state.value, modRevision: state.revision }) as T
    known.set(key, next)
    if (of === 'claim') claimNames.set(next.metadata.uid ?? '', key)
    if (old && old.metadata.uid !== next.metadata.uid)
      return [
        { of, old, next: undefined },
        { of, old: undefined, next },
      ]
    return [{ of, old, next }]
  }

  followStore(cluster, WATCHED, take)
  return {
    claims,
    volumes,
    claimNames,
    get changedMs() {
      return changedMs
    },
    onCommit: (check) => void checks.push(check),
  }
}

/** Of an object that changed several times at once, only the first state before and the last after were ever seen. */
function joined(changes: readonly Change[]): Change[] {
  const byUid = new Map<string, Change>()
  for (const change of changes) {
    const { uid = '' } = (change.next ?? change.old)!.metadata
    const known = byUid.get(uid)
    byUid.set(uid, known ? { ...known, next: change.next } : change)
  }
  return [...byUid.values()]
}

/** For the one who reads a failing run. */
export const textOf = ({ claims, volumes }: StoreView): string =>
  [...claims.values(), ...volumes.values()]
    .map(({ metadata: { name, uid, annotations, finalizers, deletionTimestamp }, spec, status }) =>
      JSON.stringify({ name, uid, deletionTimestamp, finalizers, annotations, spec, status }),
    )
    .join('\n')
