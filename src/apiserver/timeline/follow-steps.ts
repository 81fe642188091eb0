// Follows the steps of claims, from their creation until a pod can use their volume, for the histograms and traces. It
// follows only claims that were created after the server started.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { STEPS, type StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { DescribedChange } from './describe-change.ts'
import type { ChangeRecord } from './journal-record.ts'
import { claimUidOf, isNamedAfter } from './provisioned-name.ts'

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
  /** Whether the listener accepts steps late: after many changes, or when `flush` is called. Default: no. */
  readonly acceptsLateSteps?: true
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

/** Returns undefined if the change has no effect on the steps of a claim. */
export function stepChangeOf(change: DescribedChange, atMs: number): StepChange | undefined {
  const { kind, verb, metadata, volume, claimUid, handle, claims, step, hasNewClaim } = change
  if (!step && !hasNewClaim && verb !== 'delete') return undefined
  const { namespace = '', name = '', uid = '' } = metadata
  return { atMs, kind, namespace, name, uid, verb, volume, claimUid, handle, claims, step }
}

export interface StepFollower {
  /** The number of claims that are followed. */
  readonly claims: number
  addChanges(changes: readonly StepChange[]): void
  addActivity(activity: Activity): void
  /** Follows the changes that wait. */
  flush(): void
  subscribe(listener: StepListener): void
}

/**
 * Without a listener for each step, this many changes are followed together, which takes less time than a few at a time between other
 * work.
 */
const WAITING_CHANGES_MAX = 500
/** Beyond this number of claims, the steps of the least recently changed one are no longer followed. */
const CLAIMS_MAX = 20_000

interface Progress extends FollowedClaim {
  /** A bit for each step, at its index in STEPS. */
  reached: number
  lastMs: number
  hasVolume: boolean
  isDeleted: boolean
}

/**
 * Finds claims by name. Only a pod refers to its claims by name, so a new claim is indexed when the next pod is found: a server on which
 * claims are provisioned without pods builds no index.
 */
class ClaimsByName {
  readonly #indexed = new LruCache<string, Progress>(CLAIMS_MAX)
  #added: Progress[] = []
  /** The number of deleted claims in `#added`, or more. */
  #deletedCount = 0

  add(claim: Progress): void {
    this.#added.push(claim)
    if (this.#added.length > CLAIMS_MAX) this.#added = this.#added.slice(-CLAIMS_MAX / 2)
  }

  get(namespace: string, name: string): Progress | undefined {
    for (const claim of this.#added) if (!claim.isDeleted) this.#indexed.set(keyOf(claim), claim)
    this.#added = []
    this.#deletedCount = 0
    const claim = this.#indexed.get(keyOf({ namespace, name }))
    return claim?.isDeleted ? undefined : claim
  }

  /** Releases a claim that is marked as deleted. */
  delete(claim: Progress): void {
    const key = keyOf(claim)
    if (this.#indexed.get(key) === claim) this.#indexed.delete(key)
    if (++this.#deletedCount <= this.#added.length / 2) return
    this.#added = this.#added.filter(({ isDeleted }) => !isDeleted)
    this.#deletedCount = 0
  }
}

const keyOf = ({ namespace, name }: Pick<FollowedClaim, 'namespace' | 'name'>): string => `${namespace}/${name}`

export function createStepFollower(): StepFollower {
  const claims = new LruCache<string, Progress>(CLAIMS_MAX)
  const claimsByName = new ClaimsByName()
  /** By the name of the volume and by its handle, unless these contain the claim's uid. */
  const uidsByVolume = new LruCache<string, string>(2 * CLAIMS_MAX)
  const listeners: StepListener[] = []
  let followsCalls = false
  let waitsForMore = false
  let waitingChanges: StepChange[] = []

  const claimOfVolume = (volume: string): Progress | undefined =>
    claims.get(uidsByVolume.get(volume) ?? claimUidOf(volume) ?? '')

  function reach(claim: Progress | undefined, step: StepName, atMs: number): void {
    const bit = 1 << STEPS.indexOf(step)
    if (!claim || claim.reached & bit) return
    const reachedStep = { claim, step, sinceMs: claim.lastMs, atMs: Math.max(atMs, claim.lastMs) }
    claim.reached |= bit
    claim.lastMs = reachedStep.atMs
    for (const listener of listeners) listener.onStep?.(reachedStep)
  }

  function addChange(record: StepChange): void {
    const { kind, verb, uid, name, namespace = '', atMs, step, claimUid, handle, volume, claims: claimNames } = record
    if (verb === 'delete') {
      forget(record)
      return
    }
    if (kind === 'PersistentVolume') {
      const claim = claimUid ? claims.get(claimUid) : undefined
      if (!claim || !claimUid) return
      claim.hasVolume = true
      if (!isNamedAfter(name, claimUid)) uidsByVolume.set(name, claimUid)
      if (handle && !isNamedAfter(handle, claimUid)) uidsByVolume.set(handle, claimUid)
      if (step) reach(claim, step, atMs)
      return
    }
    if (!step) return
    switch (kind) {
      case 'PersistentVolumeClaim':
        if (step === 'Created') {
          const progress = { reached: 0, lastMs: atMs, hasVolume: false, isDeleted: false }
          const claim: Progress = { uid, namespace, name, createdMs: atMs, ...progress }
          claims.set(uid, claim)
          claimsByName.add(claim)
        } else reach(claims.get(uid), step, atMs)
        return
      case 'VolumeAttachment':
        reach(claimOfVolume(volume ?? ''), step, atMs)
        return
      case 'Pod':
        for (const claimName of claimNames ?? [])
          reach(claims.get(claimsByName.get(namespace, claimName)?.uid ?? ''), step, atMs)
    }
  }

  /** Removes a deleted volume. Keeps a deleted claim until its volume is deleted, because driver calls may follow until then. */
  function forget({ kind, uid, name, handle }: StepChange): void {
    if (kind === 'PersistentVolumeClaim') {
      const claim = claims.get(uid)
      if (!claim) return
      claim.isDeleted = true
      claimsByName.delete(claim)
      if (!claim.hasVolume) claims.delete(uid)
    } else if (kind === 'PersistentVolume') {
      const claim = claimOfVolume(name)
      if (claim) claim.hasVolume = false
      if (claim?.isDeleted) claims.delete(claim.uid)
      uidsByVolume.delete(name)
      if (handle) uidsByVolume.delete(handle)
    }
  }

  function flush(): void {
    const changes = waitingChanges
    waitingChanges = []
    for (const change of changes) addChange(change)
  }

  return {
    addChanges(changes) {
      for (const change of changes) waitingChanges.push(change)
      if (!waitsForMore || waitingChanges.length >= WAITING_CHANGES_MAX) flush()
    },
    addActivity(activity) {
      const { method, volume, result, start, durationMs } = activity
      if (!method || !volume || (!followsCalls && method !== 'NodePublishVolume')) return
      flush()
      const claim = claimOfVolume(volume)
      if (!claim) return
      for (const listener of listeners) listener.onCall?.(claim, activity)
      if (method === 'NodePublishVolume' && result === 'OK') reach(claim, 'Published', Date.parse(start) + durationMs)
    },
    flush,
    subscribe(listener) {
      flush()
      listeners.push(listener)
      followsCalls ||= listener.onCall !== undefined
      waitsForMore = listeners.every(({ acceptsLateSteps }) => acceptsLateSteps)
    },
    get claims() {
      flush()
      return claims.size
    },
  }
}
