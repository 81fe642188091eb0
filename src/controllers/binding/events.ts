// Events that the binder records on claims and volumes. Events that Kubernetes also records have its reason and message,
// some with an addition, because clients match on them.
import type { EventDetails } from '../../runtime/index.ts'
import { DELETION_REQUESTED_ANNOTATION } from '../../volumes/deletion-requested.ts'

export const COMPONENT = 'persistentvolume-controller'

const quote = (name: string): string => JSON.stringify(name)
const normalEvent = (reason: string, message: string): EventDetails => ({ type: 'Normal', reason, message })
const warningEvent = (reason: string, message: string): EventDetails => ({ type: 'Warning', reason, message })

// Events on waiting claims

export const noVolumeAvailable = normalEvent(
  'FailedBinding',
  'no persistent volumes available for this claim and no storage class is set',
)
export const volumeNotFound = (volume: string): EventDetails =>
  normalEvent('FailedBinding', `volume ${quote(volume)} not found: the claim names it and waits until it exists`)
export const boundToOtherClaim = (volume: string, owner: string): EventDetails =>
  warningEvent(
    'FailedBinding',
    `volume ${quote(volume)} already bound to a different claim. It belongs to ${quote(owner)}.`,
  )

export const volumeMismatch = (volume: string, reason: string): EventDetails =>
  warningEvent('VolumeMismatch', `Cannot bind to requested volume ${quote(volume)}: ${reason}`)

export const waitForFirstConsumer = normalEvent(
  'WaitForFirstConsumer',
  'waiting for first consumer to be created before binding',
)
export const waitForPodScheduled = (pods: readonly string[]): EventDetails =>
  normalEvent('WaitForPodScheduled', `waiting for pod${pods.length > 1 ? 's' : ''} ${pods.join(',')} to be scheduled`)

export const externalProvisioning = (provisioner: string): EventDetails =>
  normalEvent(
    'ExternalProvisioning',
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
      'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.',
  )
export const classNotFound = (className: string): EventDetails =>
  warningEvent('ProvisioningFailed', `storageclass.storage.k8s.io ${quote(className)} not found`)
export const provisionerNotFound = (provisioner: string): EventDetails =>
  warningEvent('ProvisioningFailed', `no volume plugin matched name: ${provisioner}`)
export const bindingModeNotSet = (className: string): EventDetails =>
  warningEvent('ProvisioningFailed', `VolumeBindingMode not set for StorageClass ${quote(className)}`)

export const attributesClassDisabled = (className: string): EventDetails =>
  warningEvent(
    'VolumeMismatch',
    `VolumeAttributesClass ${quote(className)} of the claim is not supported when the feature-gate VolumeAttributesClass ` +
      'is disabled; the claim is bound once it is enabled',
  )

export const provisionedIoDisabled = (amounts: readonly string[]): EventDetails =>
  warningEvent(
    'VolumeMismatch',
    `The claim requests ${amounts.join(' and ')}, which is not supported when the feature-gate VolumeProvisionedIO is ` +
      'disabled; the claim is bound once it is enabled',
  )

// Events on claims that have lost their volume

export const lostReference = warningEvent(
  'ClaimLost',
  'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
)
export const lostVolume = warningEvent(
  'ClaimLost',
  'Bound claim has lost its PersistentVolume. Data on the volume is lost!',
)
export const claimMisbound = warningEvent(
  'ClaimMisbound',
  'Two claims are bound to the same volume, this one is bound incorrectly',
)

// Events on a claim and the volume reserved for it whose volume modes differ

export const modeMismatchOnClaim = (volume: string): EventDetails =>
  warningEvent(
    'VolumeMismatch',
    `Cannot bind PersistentVolume ${quote(volume)} to requested PersistentVolumeClaim due to incompatible volumeMode.`,
  )
export const modeMismatchOnVolume = (claim: string): EventDetails =>
  warningEvent(
    'VolumeMismatch',
    `Cannot bind PersistentVolume to requested PersistentVolumeClaim ${quote(claim)} due to incompatible volumeMode.`,
  )

// Events on volumes that cannot be bound or reclaimed

/** Recorded if the deletion of the storage was requested, but the claimRef is missing or has no uid. */
export const deletionRequested = warningEvent(
  'VolumeHeldBack',
  'Deletion of the storage of this volume was requested, so its data may be gone: no claim is bound to it, and with the ' +
    'reclaim policy Delete its deletion continues. To keep the volume, set the policy Retain; if its data still exists, ' +
    `remove the annotation ${DELETION_REQUESTED_ANNOTATION}`,
)

const DELETE_STORAGE_MANUALLY =
  'back up its data if it is needed, delete its storage manually, which deletes the data, then delete the volume'
export const noDeleter = (volume: string): EventDetails =>
  warningEvent(
    'VolumeFailedDelete',
    `error getting deleter volume plugin for volume ${quote(volume)}: no deletable volume plugin matched; ` +
      DELETE_STORAGE_MANUALLY,
  )
export const deleterNotFound = (provisioner: string): EventDetails =>
  warningEvent('VolumeFailedDelete', `no volume plugin matched name: ${provisioner}; ${DELETE_STORAGE_MANUALLY}`)
export const noRecycler = warningEvent(
  'VolumeFailedRecycle',
  'No recycler plugin found for the volume! Clean it manually and remove its claimRef to make it available again',
)
export const volumeUsedByPods = (pods: readonly string[]): EventDetails =>
  normalEvent('VolumeFailedRecycle', `Volume is used by pods: ${pods.join(',')}`)
export const unknownPolicy = warningEvent(
  'VolumeUnknownReclaimPolicy',
  'Volume has unrecognized PersistentVolumeReclaimPolicy',
)
