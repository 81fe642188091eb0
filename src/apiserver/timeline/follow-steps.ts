// Follows the steps of claims, from their creation until a pod can use their volume, for the histograms and traces. It
// follows only claims that were created after the server started.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { ChangeRecord } from './journal-record.ts'

export interface FollowedClaim {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly createdMs: number
}

export interface ReachedStep {
  readonly claim: FollowedClaim
  readonly step: StepName
  /** The time at which the previous step was reached. */
  readonly sinceMs: number
  readonly atMs: number
}

export interface StepListener {
  /** Called when a claim reaches a step for the first time, except for its creation. */
  onStep?(step: ReachedStep): void
  /** Called for each driver call on a claim's volume. */
  onCall?(claim: FollowedClaim, call: Activity): void
}

/** A change of a claim, a volume, an attachment or a pod, with the fields of its record that steps depend on. */
export interface StepChange {
  readonly atMs: number
  readonly kind: string
  readonly namespace?: string | undefined
  readonly name: string
  readonly uid: string
  readonly verb: ChangeRecord['verb']
  readonly volume?: string | undefined
  readonly claimUid?: string | undefined
  readonly handle?: string | undefined
  readonly claims?: readonly string[] | undefined
  readonly step?: StepName | undefined
}

export interface StepFollower {
  /** The number of claims that are followed. */
  readonly claims: number
  addChanges(changes: readonly StepChange[]): void
  addActivity(activity: Activity): void
  subscribe(listener: StepListener): void
}

/** Beyond this number of claims, the steps of the least recently changed one are no longer followed. */
const CLAIMS_MAX = 20_000

const NO_STEPS: readonly StepName[] = []

interface Progress extends FollowedClaim {
  reached: readonly StepName[]
  lastMs: number
  hasVolume: boolean
  isDeleted: boolean
}

/** Provisioned volumes are named after the uid of their claim. */
const VOLUME_PREFIX = 'pvc-'

const isNamedAfter = (volume: string, claimUid: string): boolean =>
  volume.length === VOLUME_PREFIX.length + claimUid.length &&
  volume.startsWith(VOLUME_PREFIX) &&
  volume.endsWith(claimUid)

export function createStepFollower(): StepFollower {
  const claims = new LruCache<string, Progress>(CLAIMS_MAX)
  const uidsByName = new LruCache<string, string>(CLAIMS_MAX)
  /** By the name of the volume and by its handle, unless these contain the claim's uid. */
  const uidsByVolume = new LruCache<string, string>(2 * CLAIMS_MAX)
  const listeners: StepListener[] = []

  const claimOfVolume = (volume: string): Progress | undefined =>
    claims.get(uidsByVolume.get(volume) ?? (volume.startsWith(VOLUME_PREFIX) ? volume.slice(VOLUME_PREFIX.length) : ''))

  function reach(claim: Progress | undefined, step: StepName, atMs: number): void {
    if (!claim || claim.reached.includes(step)) return
    const reachedStep = { claim, step, sinceMs: claim.lastMs, atMs: Math.max(atMs, claim.lastMs) }
    claim.reached = [...claim.reached, step]
    claim.lastMs = reachedStep.atMs
    for (const { onStep } of listeners) onStep?.(reachedStep)
  }

  function addChange(record: StepChange): void {
    const {
      kind,
      verb,
      uid,
      name,
      namespace = '',
      atMs,
      step,
      claimUid,
      handle,
      volume,
      claims: claimNames = [],
    } = record
    if (verb === 'delete') {
      forget(record)
      return
    }
    if (kind === 'PersistentVolume' && claimUid) {
      const claim = claims.get(claimUid)
      if (!claim) return
      claim.hasVolume = true
      if (!isNamedAfter(name, claimUid)) uidsByVolume.set(name, claimUid)
      if (handle && !isNamedAfter(handle, claimUid)) uidsByVolume.set(handle, claimUid)
    }
    if (!step) return
    switch (kind) {
      case 'PersistentVolumeClaim':
        if (step === 'Created') {
          const fresh = { reached: NO_STEPS, lastMs: atMs, hasVolume: false, isDeleted: false }
          claims.set(uid, { uid, namespace, name, createdMs: atMs, ...fresh })
          uidsByName.set(`${namespace}/${name}`, uid)
        } else reach(claims.get(uid), step, atMs)
        return
      case 'PersistentVolume':
        reach(claims.get(claimUid ?? ''), step, atMs)
        return
      case 'VolumeAttachment':
        reach(claimOfVolume(volume ?? ''), step, atMs)
        return
      case 'Pod':
        for (const claimName of claimNames)
          reach(claims.get(uidsByName.get(`${namespace}/${claimName}`) ?? ''), step, atMs)
    }
  }

  /** Removes a deleted volume. Keeps a deleted claim until its volume is deleted, because driver calls may follow until then. */
  function forget({ kind, uid, name, namespace = '', handle }: StepChange): void {
    if (kind === 'PersistentVolumeClaim') {
      if (uidsByName.get(`${namespace}/${name}`) === uid) uidsByName.delete(`${namespace}/${name}`)
      const claim = claims.get(uid)
      if (claim?.hasVolume) claim.isDeleted = true
      else claims.delete(uid)
    } else if (kind === 'PersistentVolume') {
      const claim = claimOfVolume(name)
      if (claim) claim.hasVolume = false
      if (claim?.isDeleted) claims.delete(claim.uid)
      uidsByVolume.delete(name)
      if (handle) uidsByVolume.delete(handle)
    }
  }

  return {
    addChanges(changes) {
      for (const record of changes) addChange(record)
    },
    addActivity(activity) {
      const { method, volume, result, start, durationMs } = activity
      if (!method || !volume) return
      const claim = claimOfVolume(volume)
      if (!claim) return
      for (const { onCall } of listeners) onCall?.(claim, activity)
      if (method === 'NodePublishVolume' && result === 'OK') reach(claim, 'Published', Date.parse(start) + durationMs)
    },
    subscribe: (listener) => void listeners.push(listener),
    get claims() {
      return claims.size
    },
  }
}
