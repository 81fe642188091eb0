// Replays the recorded history, one revision after the other: runs the simulator's checker of bindings, checks that sizes do
// not decrease and quotas are not exceeded, and collects the storage that was abandoned and the storage that may be deleted.
import { type ClaimOrVolumeChange, type ClaimsAndVolumes, checkBindings } from '../../src/sim/checkers/bindings.ts'
import { type AbandonedStorage, trackAbandonedStorage } from './abandoned-storage.ts'
import { assetOf, type Claim, type Volume } from './assets.ts'
import { keyOf, type RecordedEvent } from './watch-recorder.ts'
import { bytesOf } from './workload.ts'

export interface Replay {
  readonly violations: readonly string[]
  readonly abandoned: AbandonedStorage
  /** Assets that a provisioner was allowed to delete at some time. */
  readonly deletableAssets: ReadonlySet<string>
}

/** Replays a history. `userDeletedUids` has the uids of PersistentVolumes that users deleted. */
export function replay(history: readonly RecordedEvent[], userDeletedUids: ReadonlySet<string>): Replay {
  const violations: string[] = []
  const deletableAssets = new Set<string>()
  const { view, play } = createView()
  const abandoned = trackAbandonedStorage(view)
  for (const uid of userDeletedUids) abandoned.recordUserDeletion({ metadata: { uid } } as Volume)
  checkBindings(view, (violation) => void violations.push(violation))
  view.onCommit(([change]) => {
    const { of, old, next } = change!
    if (of === 'volume') checkVolume(old as Volume | undefined, next as Volume | undefined)
    else checkClaim(old as Claim | undefined, next as Claim | undefined)
  })
  const quotas = new Map<string, any>()
  for (const event of history) {
    if (event.collection === 'quotas') checkQuota(event)
    else play(event)
  }
  return { violations, abandoned, deletableAssets }

  function checkVolume(old: Volume | undefined, next: Volume | undefined): void {
    if (old && next && bytesOf(next.spec?.capacity?.storage) < bytesOf(old.spec?.capacity?.storage))
      violations.push(`the capacity of volume ${next.metadata.name} decreased to ${next.spec?.capacity?.storage}`)
    const { metadata, spec, status } = (next ?? old)!
    const isReclaimable = status?.phase === 'Released' || metadata.deletionTimestamp !== undefined
    const asset = assetOf((next ?? old)!)
    if (asset && isReclaimable && spec?.persistentVolumeReclaimPolicy === 'Delete') deletableAssets.add(asset)
  }

  function checkClaim(old: Claim | undefined, next: Claim | undefined): void {
    if (old && next && bytesOf(next.status?.capacity?.storage) < bytesOf(old.status?.capacity?.storage))
      violations.push(`the capacity of claim ${keyOf(next)} decreased to ${next.status?.capacity?.storage}`)
  }

  /** Reports usage that rises above the hard limit. Usage above a lowered limit may stay. */
  function checkQuota({ type, object }: RecordedEvent): void {
    const key = keyOf(object)
    const old = quotas.get(key)
    if (type === 'DELETED') return void quotas.delete(key)
    quotas.set(key, object)
    if (old?.metadata.uid !== object.metadata.uid) return
    for (const name of BOUNDED_RESOURCES) {
      const [previous, used] = [old.status?.used?.[name], object.status?.used?.[name]].map(bytesOf)
      const bound = Math.max(...[old, object].map(({ spec }) => bytesOf(spec.hard[name] ?? '0')))
      const isCounted = old.status?.used?.[name] !== undefined && object.spec.hard[name] !== undefined
      if (isCounted && used! > previous! && used! > bound)
        violations.push(`quota ${key} was exceeded: ${name} ${used} of ${bound}`)
    }
  }
}

const BOUNDED_RESOURCES = ['requests.storage', 'persistentvolumeclaims']

function createView(): { view: ClaimsAndVolumes; play(event: RecordedEvent): void } {
  const claims = new Map<string, Claim>()
  const volumes = new Map<string, Volume>()
  const claimNames = new Map<string, string>()
  const checks: ((changes: readonly ClaimOrVolumeChange[]) => void)[] = []
  const view: ClaimsAndVolumes = { claims, volumes, claimNames, onCommit: (check) => void checks.push(check) }
  return {
    view,
    play({ collection, type, object }) {
      if (collection !== 'claims' && collection !== 'volumes') return
      const objects: Map<string, Claim | Volume> = collection === 'claims' ? claims : volumes
      const key = keyOf(object)
      const old = objects.get(key)
      const next = type === 'DELETED' ? undefined : object
      if (next) objects.set(key, next)
      else objects.delete(key)
      if (collection === 'claims') claimNames.set(object.metadata.uid, key)
      for (const check of checks) check([{ of: collection === 'claims' ? 'claim' : 'volume', old, next }])
    },
  }
}

/** Builds a view of fixed objects, for checkers of the state at rest. */
export function viewOf(claims: readonly any[], volumes: readonly any[]): ClaimsAndVolumes {
  return {
    claims: new Map(claims.map((claim) => [keyOf(claim), claim])),
    volumes: new Map(volumes.map((volume) => [keyOf(volume), volume])),
    claimNames: new Map(claims.map((claim) => [claim.metadata.uid, keyOf(claim)])),
    onCommit: () => {},
  }
}
