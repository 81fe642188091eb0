// What should happen to one claim, as data: bind it, ask a provisioner, give it the default class, give it up, or wait
// and say why. Pure; reconcile-claim.ts gathers the situation and carries the plan out.
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { Happening } from '../../runtime/index.ts'
import { mismatchReason, STORAGE_BEING_DELETED } from '../../volumes/choose-volume.ts'
import { isDeletionRequested } from '../../volumes/deletion-requested.ts'
import {
  type Claim,
  candidateOf,
  claimKeyOf,
  isReservedFor,
  requirementsOf,
  type Volume,
} from '../../volumes/matching.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, IN_TREE_PREFIX, SELECTED_NODE } from '../../volumes/names.ts'
import {
  attributesClassGateOff,
  belongsToAnother,
  classNotFound,
  externalProvisioning,
  lostReference,
  lostVolume,
  misbound,
  namedMissing,
  noBindingMode,
  noPlugin,
  nothingAvailable,
  volumeMismatch,
  waitsForConsumer,
  waitsForPods,
} from './events.ts'

export interface ClaimSituation {
  readonly claim: Claim
  /** The volume its spec names; absent when it names none, or one that does not exist. */
  readonly named: Volume | undefined
  /** `named` was read from the server just now; what a cache says may be out of date. */
  readonly isSure: boolean
  /** The class it names, if that exists. */
  readonly storageClass: Readonly<StorageClass> | undefined
  /** Looked up only where they matter. */
  defaultClass(): Readonly<StorageClass> | undefined
  choose(choosing: { readonly isDelayed: boolean }): Volume | undefined
  /** Names of pods that use the claim, have not ended, and have no node yet. */
  unscheduledPods(): readonly string[]
  /** Whether a provisioner of that name runs in this process. */
  isInProcess(provisioner: string): boolean
  /** The gate VolumeAttributesClass is on: claims that name such a class are bound. */
  readonly bindsAttributesClasses: boolean
}

export type ClaimAction =
  | { readonly do: 'bind'; readonly volume: Volume }
  /** Before believing that its volume is lost. */
  | { readonly do: 'read its volume' }
  | { readonly do: 'give up'; readonly tell: Happening }
  | { readonly do: 'assign class'; readonly className: string }
  | { readonly do: 'ask'; readonly provisioner: string; readonly because: string; readonly tell?: Happening }
  | {
      readonly do: 'wait'
      readonly because: string
      readonly tell?: Happening
      /** What the status should say meanwhile; without it, it is left alone. */
      readonly phase?: 'Pending'
    }

export const isBindCompleted = (claim: Claim): boolean => annotationOf(claim, BIND_COMPLETED) !== undefined

export function planClaim(situation: ClaimSituation): ClaimAction {
  if (isBindCompleted(situation.claim)) return planBound(situation)
  const attributesClass = situation.claim.spec?.volumeAttributesClassName
  if (attributesClass && !situation.bindsAttributesClasses) {
    const tell = attributesClassGateOff(attributesClass)
    return { do: 'wait', because: tell.message, tell, phase: 'Pending' }
  }
  return situation.claim.spec?.volumeName ? planNamed(situation) : planUnbound(situation)
}

/** Bound once: it keeps that volume or is lost, and everything that is missing of the binding is repaired. */
function planBound({ claim, named, isSure }: ClaimSituation): ClaimAction {
  if (!claim.spec?.volumeName) return { do: 'give up', tell: lostReference }
  const owner = named?.spec?.claimRef
  if (named && (!owner || owner.uid === claim.metadata.uid)) return { do: 'bind', volume: named }
  if (!isSure) return { do: 'read its volume' }
  return { do: 'give up', tell: named ? misbound : lostVolume }
}

/** The user, or an earlier pass, has said which volume it must be. */
function planNamed({ claim, named }: ClaimSituation): ClaimAction {
  const name = claim.spec?.volumeName ?? ''
  if (!named) {
    const tell = namedMissing(name)
    return { do: 'wait', because: tell.message, tell, phase: 'Pending' }
  }
  if (!named.spec?.claimRef) {
    const why = mismatchReason(candidateOf(named), requirementsOf(claim))
    if (why === undefined) return { do: 'bind', volume: named }
    const tell = volumeMismatch(name, why)
    return { do: 'wait', because: tell.message, tell, phase: 'Pending' }
  }
  if (isReservedFor(named, claim)) {
    if (!isDeletionRequested(named)) return { do: 'bind', volume: named }
    const tell = volumeMismatch(name, STORAGE_BEING_DELETED)
    return { do: 'wait', because: tell.message, tell, phase: 'Pending' }
  }
  const tell = belongsToAnother(name, claimKeyOf(named) ?? '')
  // Where a controller has set the name, a binding is broken in a way that nobody but its author can mend.
  const isOurs = annotationOf(claim, BOUND_BY_CONTROLLER) !== undefined
  return { do: 'wait', because: tell.message, tell, ...(isOurs ? {} : { phase: 'Pending' }) }
}

/** Any volume will do. */
function planUnbound(situation: ClaimSituation): ClaimAction {
  const { claim, storageClass } = situation
  const className = claimClassName(claim)
  if (storageClass && !storageClass.volumeBindingMode) {
    const tell = noBindingMode(className ?? '')
    return { do: 'wait', because: tell.message, tell }
  }
  const isGoing = claim.metadata.deletionTimestamp !== undefined
  const isDelayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
  // For a claim that is going, only a volume that was made for it is still bound: it then goes the way of all volumes.
  const volume = situation.choose({ isDelayed: isDelayed || isGoing })
  if (volume) return { do: 'bind', volume }
  if (isGoing) return { do: 'wait', because: 'it is being deleted' }
  if (className === undefined) {
    const byDefault = situation.defaultClass()?.metadata.name
    if (byDefault) return { do: 'assign class', className: byDefault }
  }
  if (isDelayed && annotationOf(claim, SELECTED_NODE) === undefined) {
    const pods = situation.unscheduledPods()
    const tell = pods.length > 0 ? waitsForPods(pods) : waitsForConsumer
    return { do: 'wait', because: tell.message, tell, phase: 'Pending' }
  }
  if (className) return planProvisioning(className, situation)
  return { do: 'wait', because: nothingAvailable.message, tell: nothingAvailable, phase: 'Pending' }
}

/** Nothing that exists will do, but its class may make one. */
function planProvisioning(className: string, { storageClass, isInProcess }: ClaimSituation): ClaimAction {
  if (!storageClass) {
    const because = `its class "${className}" does not exist; it waits for the class, or for a volume of that class`
    return { do: 'wait', because, tell: classNotFound(className) }
  }
  const { provisioner } = storageClass
  const because = `waiting for the provisioner "${provisioner}" to make a volume`
  if (isInProcess(provisioner)) return { do: 'ask', provisioner, because }
  if (provisioner.startsWith(IN_TREE_PREFIX)) {
    const why = `the provisioner "${provisioner}" of its class "${className}" makes no volumes; it waits for a volume of that class`
    return { do: 'wait', because: why, tell: noPlugin(provisioner) }
  }
  return { do: 'ask', provisioner, because, tell: externalProvisioning(provisioner) }
}
