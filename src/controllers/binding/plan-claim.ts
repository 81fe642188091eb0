// Plans the next action for a claim: bind it, request provisioning, assign the default class, mark it lost, or wait.
// Pure. reconcile-claim.ts reads the input and applies the plan.
import {
  BINDS_IMMEDIATELY,
  CLASS_NOT_FOUND,
  type Readiness,
  WAITS_FOR_FIRST_CONSUMER,
} from '../../api/kinds/claim/first-consumer.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { AwaitedObject } from '../../base/operation-details.ts'
import type { EventDetails } from '../../runtime/index.ts'
import {
  CLASS_MISMATCH,
  isReservedClassMismatch,
  mismatchReason,
  STORAGE_BEING_DELETED,
} from '../../volumes/choose-volume.ts'
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
  attributesClassDisabled,
  bindingModeNotSet,
  boundToOtherClaim,
  claimMisbound,
  classNotFound,
  externalProvisioning,
  lostReference,
  lostVolume,
  noVolumeAvailable,
  provisionedIoDisabled,
  provisionerNotFound,
  volumeMismatch,
  volumeNotFound,
  waitForFirstConsumer,
  waitForPodScheduled,
} from './events.ts'

export interface ClaimSituation {
  readonly claim: Claim
  /** The volume of spec.volumeName; undefined if the field is empty or the volume does not exist. */
  readonly namedVolume: Volume | undefined
  /** Whether `namedVolume` was just read from the server rather than from the cache, which may be behind. */
  readonly isLive: boolean
  /** The class that the claim names, if it exists. */
  readonly storageClass: Readonly<StorageClass> | undefined
  // Functions, because the plan needs only some of these inputs.
  defaultClass(): Readonly<StorageClass> | undefined
  findVolume(options: { readonly isDelayed: boolean }): Volume | undefined
  /** Returns the names of pods that use the claim, have not terminated and are not scheduled. */
  unscheduledPods(): readonly string[]
  /** Whether a provisioner with this name runs in this process. */
  isInProcess(provisioner: string): boolean
  /** The feature gate VolumeAttributesClass. If it is disabled, claims with an attributes class are not bound. */
  readonly isAttributesClassEnabled: boolean
  /** The feature gate VolumeProvisionedIO. If it is disabled, claims that request iops or throughput are not bound. */
  readonly isProvisionedIoEnabled: boolean
}

export type ClaimAction =
  | { readonly do: 'bind'; readonly volume: Volume }
  /** Read the volume from the server before the claim is marked lost. */
  | { readonly do: 'read volume' }
  | { readonly do: 'mark lost'; readonly event: EventDetails }
  | { readonly do: 'assign class'; readonly className: string }
  | {
      readonly do: 'provision'
      readonly provisioner: string
      readonly message: string
      readonly event?: EventDetails
      readonly readiness?: Readiness
    }
  | {
      readonly do: 'wait'
      readonly message: string
      readonly event?: EventDetails
      /** Whether most such waits are short: the event is recorded only if this one lasts. */
      readonly isUsuallyShort?: true
      /** The phase to set. If absent, the phase does not change. */
      readonly phase?: 'Pending'
      /** The object whose change ends the wait, if it is a single one. */
      readonly waitsFor?: AwaitedObject
      /** The condition ReadyForFirstConsumer. If absent, it does not change. */
      readonly readiness?: Readiness
    }

export const isBindCompleted = (claim: Claim): boolean => annotationOf(claim, BIND_COMPLETED) !== undefined

export function planClaim(situation: ClaimSituation): ClaimAction {
  if (isBindCompleted(situation.claim)) return planBound(situation)
  const attributesClass = situation.claim.spec?.volumeAttributesClassName
  if (attributesClass && !situation.isAttributesClassEnabled) {
    const event = attributesClassDisabled(attributesClass)
    return { do: 'wait', message: event.message, event, phase: 'Pending' }
  }
  const requests = situation.claim.spec?.resources?.requests
  const amounts = IO_RESOURCES.filter((name) => amountOf(requests, name) !== undefined)
  if (amounts.length > 0 && !situation.isProvisionedIoEnabled) {
    const event = provisionedIoDisabled(amounts)
    return { do: 'wait', message: event.message, event, phase: 'Pending' }
  }
  return situation.claim.spec?.volumeName ? planNamedVolume(situation) : planUnbound(situation)
}

/** Plans a claim that was bound before: it keeps its volume, with missing fields written again, or is lost. */
function planBound({ claim, namedVolume, isLive }: ClaimSituation): ClaimAction {
  if (!claim.spec?.volumeName) return { do: 'mark lost', event: lostReference }
  const owner = namedVolume?.spec?.claimRef
  if (namedVolume && (!owner || owner.uid === claim.metadata.uid)) return { do: 'bind', volume: namedVolume }
  if (!isLive) return { do: 'read volume' }
  return { do: 'mark lost', event: namedVolume ? claimMisbound : lostVolume }
}

/** Plans a claim whose volumeName was set by a user or an earlier reconcile. */
function planNamedVolume({ claim, namedVolume }: ClaimSituation): ClaimAction {
  const name = claim.spec?.volumeName ?? ''
  const waitsFor: AwaitedObject = { kind: 'PersistentVolume', name }
  if (!namedVolume) {
    const event = volumeNotFound(name)
    return { do: 'wait', message: event.message, event, phase: 'Pending', waitsFor }
  }
  if (!namedVolume.spec?.claimRef) {
    const mismatch = mismatchReason(candidateOf(namedVolume), requirementsOf(claim))
    if (mismatch === undefined) return { do: 'bind', volume: namedVolume }
    const event = volumeMismatch(name, mismatch)
    return { do: 'wait', message: event.message, event, phase: 'Pending', waitsFor }
  }
  if (isReservedFor(namedVolume, claim)) {
    const mismatch = mutualMismatch(namedVolume, claim)
    if (mismatch === undefined) return { do: 'bind', volume: namedVolume }
    const event = volumeMismatch(name, mismatch)
    return { do: 'wait', message: event.message, event, phase: 'Pending', waitsFor }
  }
  const event = boundToOtherClaim(name, claimKeyOf(namedVolume) ?? '')
  // If a controller set volumeName, the binding is inconsistent and the status does not change.
  const isBoundByController = annotationOf(claim, BOUND_BY_CONTROLLER) !== undefined
  return { do: 'wait', message: event.message, event, phase: isBoundByController ? undefined : 'Pending', waitsFor }
}

/** Returns the reason why a volume and a claim that name each other cannot be bound. Size, modes and labels do not matter. */
function mutualMismatch(volume: Volume, claim: Claim): string | undefined {
  if (isDeletionRequested(volume)) return STORAGE_BEING_DELETED
  return isReservedClassMismatch(candidateOf(volume), requirementsOf(claim)) ? CLASS_MISMATCH : undefined
}

/** Plans a claim without volumeName. */
function planUnbound(situation: ClaimSituation): ClaimAction {
  const { claim, storageClass } = situation
  const className = claimClassName(claim)
  if (storageClass && !storageClass.volumeBindingMode) {
    const event = bindingModeNotSet(className ?? '')
    return { do: 'wait', message: event.message, event, waitsFor: classRef(className ?? '') }
  }
  const isBeingDeleted = claim.metadata.deletionTimestamp !== undefined
  const isDelayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
  // A claim being deleted binds only to a volume reserved for it, so that a volume provisioned for it is then reclaimed.
  const volume = situation.findVolume({ isDelayed: isDelayed || isBeingDeleted })
  if (volume) return { do: 'bind', volume }
  if (isBeingDeleted) return { do: 'wait', message: 'the claim is being deleted' }
  if (className === undefined) {
    const defaultClassName = situation.defaultClass()?.metadata.name
    if (defaultClassName) return { do: 'assign class', className: defaultClassName }
  }
  if (isDelayed && annotationOf(claim, SELECTED_NODE) === undefined) {
    const pods = situation.unscheduledPods()
    const [name] = pods
    const readiness = WAITS_FOR_FIRST_CONSUMER
    if (name === undefined) {
      const { message } = waitForFirstConsumer
      return { do: 'wait', message, event: waitForFirstConsumer, phase: 'Pending', readiness }
    }
    const event = waitForPodScheduled(pods)
    const waitsFor = { kind: 'Pod', namespace: claim.metadata.namespace ?? '', name }
    return { do: 'wait', message: event.message, event, isUsuallyShort: true, phase: 'Pending', waitsFor, readiness }
  }
  if (className) return planProvisioning(className, situation)
  return { do: 'wait', message: noVolumeAvailable.message, event: noVolumeAvailable, phase: 'Pending' }
}

const classRef = (name: string): AwaitedObject => ({ kind: 'StorageClass', name })

/** Plans a claim that no existing volume satisfies. */
function planProvisioning(className: string, { storageClass, isInProcess }: ClaimSituation): ClaimAction {
  if (!storageClass) {
    const message = `class "${className}" does not exist; waiting for this class or for a volume of it`
    return {
      do: 'wait',
      message,
      event: classNotFound(className),
      waitsFor: classRef(className),
      readiness: CLASS_NOT_FOUND,
    }
  }
  const { provisioner } = storageClass
  const message = `waiting for the provisioner "${provisioner}" to create a volume`
  const readiness = storageClass.volumeBindingMode === 'Immediate' ? { readiness: BINDS_IMMEDIATELY } : {}
  if (isInProcess(provisioner)) return { do: 'provision', provisioner, message, ...readiness }
  if (provisioner.startsWith(IN_TREE_PREFIX)) {
    const problem = `the provisioner "${provisioner}" of class "${className}" does not exist; waiting for a volume of this class`
    return { do: 'wait', message: problem, event: provisionerNotFound(provisioner) }
  }
  return { do: 'provision', provisioner, message, event: externalProvisioning(provisioner), ...readiness }
}
