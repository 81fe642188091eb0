// Plans one claim, as data: bind it, request provisioning, assign the default class, mark it lost, or wait with a reason.
// Pure. reconcile-claim.ts reads the input and applies the plan.
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { EventDetails } from '../../runtime/index.ts'
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
  /** The volume of spec.volumeName; undefined without a name and if it does not exist. */
  readonly named: Volume | undefined
  /** `named` was just read from the server rather than from the cache, which may be behind. */
  readonly isLive: boolean
  /** The class that the claim names, if it exists. */
  readonly storageClass: Readonly<StorageClass> | undefined
  // Functions, so that they run only where the plan depends on them.
  defaultClass(): Readonly<StorageClass> | undefined
  choose(options: { readonly isDelayed: boolean }): Volume | undefined
  /** Names of pods that use the claim, have not ended and are not scheduled. */
  unscheduledPods(): readonly string[]
  /** Whether a provisioner of that name runs in this process. */
  isInProcess(provisioner: string): boolean
  /** The feature gate VolumeAttributesClass: without it, claims with such a class are not bound. */
  readonly bindsAttributesClasses: boolean
}

export type ClaimAction =
  | { readonly do: 'bind'; readonly volume: Volume }
  /** Before treating its volume as lost. */
  | { readonly do: 'read its volume' }
  | { readonly do: 'mark lost'; readonly event: EventDetails }
  | { readonly do: 'assign class'; readonly className: string }
  | { readonly do: 'provision'; readonly provisioner: string; readonly because: string; readonly event?: EventDetails }
  | {
      readonly do: 'wait'
      readonly because: string
      readonly event?: EventDetails
      /** The phase to set; absent: unchanged. */
      readonly phase?: 'Pending'
    }

export const isBindCompleted = (claim: Claim): boolean => annotationOf(claim, BIND_COMPLETED) !== undefined

export function planClaim(situation: ClaimSituation): ClaimAction {
  if (isBindCompleted(situation.claim)) return planBound(situation)
  const attributesClass = situation.claim.spec?.volumeAttributesClassName
  if (attributesClass && !situation.bindsAttributesClasses) {
    const event = attributesClassGateOff(attributesClass)
    return { do: 'wait', because: event.message, event, phase: 'Pending' }
  }
  return situation.claim.spec?.volumeName ? planNamed(situation) : planUnbound(situation)
}

/** Bound before: it keeps its volume or is lost. Missing parts of the binding are written again. */
function planBound({ claim, named, isLive }: ClaimSituation): ClaimAction {
  if (!claim.spec?.volumeName) return { do: 'mark lost', event: lostReference }
  const owner = named?.spec?.claimRef
  if (named && (!owner || owner.uid === claim.metadata.uid)) return { do: 'bind', volume: named }
  if (!isLive) return { do: 'read its volume' }
  return { do: 'mark lost', event: named ? misbound : lostVolume }
}

/** The user or an earlier reconcile has set volumeName. */
function planNamed({ claim, named }: ClaimSituation): ClaimAction {
  const name = claim.spec?.volumeName ?? ''
  if (!named) {
    const event = namedMissing(name)
    return { do: 'wait', because: event.message, event, phase: 'Pending' }
  }
  if (!named.spec?.claimRef) {
    const why = mismatchReason(candidateOf(named), requirementsOf(claim))
    if (why === undefined) return { do: 'bind', volume: named }
    const event = volumeMismatch(name, why)
    return { do: 'wait', because: event.message, event, phase: 'Pending' }
  }
  if (isReservedFor(named, claim)) {
    if (!isDeletionRequested(named)) return { do: 'bind', volume: named }
    const event = volumeMismatch(name, STORAGE_BEING_DELETED)
    return { do: 'wait', because: event.message, event, phase: 'Pending' }
  }
  const event = belongsToAnother(name, claimKeyOf(named) ?? '')
  // A controller has set the name: that binding is inconsistent, so the status is left for its author to fix.
  const isByController = annotationOf(claim, BOUND_BY_CONTROLLER) !== undefined
  return { do: 'wait', because: event.message, event, phase: isByController ? undefined : 'Pending' }
}

/** No volume is named: any that fits. */
function planUnbound(situation: ClaimSituation): ClaimAction {
  const { claim, storageClass } = situation
  const className = claimClassName(claim)
  if (storageClass && !storageClass.volumeBindingMode) {
    const event = noBindingMode(className ?? '')
    return { do: 'wait', because: event.message, event }
  }
  const isDeleted = claim.metadata.deletionTimestamp !== undefined
  const isDelayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
  // A claim being deleted binds only to the volume provisioned for it, so that the volume is then reclaimed.
  const volume = situation.choose({ isDelayed: isDelayed || isDeleted })
  if (volume) return { do: 'bind', volume }
  if (isDeleted) return { do: 'wait', because: 'the claim is being deleted' }
  if (className === undefined) {
    const byDefault = situation.defaultClass()?.metadata.name
    if (byDefault) return { do: 'assign class', className: byDefault }
  }
  if (isDelayed && annotationOf(claim, SELECTED_NODE) === undefined) {
    const pods = situation.unscheduledPods()
    const event = pods.length > 0 ? waitsForPods(pods) : waitsForConsumer
    return { do: 'wait', because: event.message, event, phase: 'Pending' }
  }
  if (className) return planProvisioning(className, situation)
  return { do: 'wait', because: nothingAvailable.message, event: nothingAvailable, phase: 'Pending' }
}

/** No existing volume fits. */
function planProvisioning(className: string, { storageClass, isInProcess }: ClaimSituation): ClaimAction {
  if (!storageClass) {
    const because = `its class "${className}" does not exist; waiting for the class or for a volume of that class`
    return { do: 'wait', because, event: classNotFound(className) }
  }
  const { provisioner } = storageClass
  const because = `waiting for the provisioner "${provisioner}" to create a volume`
  if (isInProcess(provisioner)) return { do: 'provision', provisioner, because }
  if (provisioner.startsWith(IN_TREE_PREFIX)) {
    const why = `the provisioner "${provisioner}" of its class "${className}" does not exist; waiting for a volume of that class`
    return { do: 'wait', because: why, event: noPlugin(provisioner) }
  }
  return { do: 'provision', provisioner, because, event: externalProvisioning(provisioner) }
}
