// Events that the binder records on claims and volumes. Reasons and wording are those of Kubernetes, which clients match.
import type { EventDetails } from '../../runtime/index.ts'
import { DELETION_REQUESTED_ANNOTATION } from '../../volumes/deletion-requested.ts'

export const COMPONENT = 'persistentvolume-controller'

const quoted = (name: string): string => JSON.stringify(name)
const normal = (reason: string, message: string): EventDetails => ({ type: 'Normal', reason, message })
const warning = (reason: string, message: string): EventDetails => ({ type: 'Warning', reason, message })

// On waiting claims

export const nothingAvailable = normal(
  'FailedBinding',
  'no persistent volumes available for this claim and no storage class is set',
)
export const namedMissing = (volume: string): EventDetails =>
  normal('FailedBinding', `volume ${quoted(volume)} not found: the claim names it and waits until it exists`)
export const belongsToAnother = (volume: string, owner: string): EventDetails =>
  warning(
    'FailedBinding',
    `volume ${quoted(volume)} already bound to a different claim. It belongs to ${quoted(owner)}.`,
  )

export const volumeMismatch = (volume: string, why: string): EventDetails =>
  warning('VolumeMismatch', `Cannot bind to requested volume ${quoted(volume)}: ${why}`)

export const waitsForConsumer = normal(
  'WaitForFirstConsumer',
  'waiting for first consumer to be created before binding',
)
export const waitsForPods = (pods: readonly string[]): EventDetails =>
  normal('WaitForPodScheduled', `waiting for pod${pods.length > 1 ? 's' : ''} ${pods.join(',')} to be scheduled`)

export const externalProvisioning = (provisioner: string): EventDetails =>
  normal(
    'ExternalProvisioning',
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
      'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.',
  )
export const classNotFound = (className: string): EventDetails =>
  warning('ProvisioningFailed', `storageclass.storage.k8s.io ${quoted(className)} not found`)
export const noPlugin = (provisioner: string): EventDetails =>
  warning('ProvisioningFailed', `no volume plugin matched name: ${provisioner}`)
export const noBindingMode = (className: string): EventDetails =>
  warning('ProvisioningFailed', `VolumeBindingMode not set for StorageClass ${quoted(className)}`)

export const attributesClassGateOff = (className: string): EventDetails =>
  warning(
    'VolumeMismatch',
    `VolumeAttributesClass ${quoted(className)} of the claim is not supported when the feature-gate VolumeAttributesClass ` +
      'is disabled; the claim is bound once it is enabled',
  )

// On claims whose volume no longer exists

export const lostReference = warning(
  'ClaimLost',
  'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
)
export const lostVolume = warning('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!')
export const misbound = warning(
  'ClaimMisbound',
  'Two claims are bound to the same volume, this one is bound incorrectly',
)

// On a claim and the volume provisioned for it, when they do not match

export const modeMismatchOnClaim = (volume: string): EventDetails =>
  warning(
    'VolumeMismatch',
    `Cannot bind PersistentVolume ${quoted(volume)} to requested PersistentVolumeClaim due to incompatible volumeMode.`,
  )
export const modeMismatchOnVolume = (claim: string): EventDetails =>
  warning(
    'VolumeMismatch',
    `Cannot bind PersistentVolume to requested PersistentVolumeClaim ${quoted(claim)} due to incompatible volumeMode.`,
  )

// On volumes that cannot be reclaimed

/** For an operator who removed the claimRef without knowing that deletion had begun. */
export const deletionRequested = warning(
  'VolumeHeldBack',
  'Deletion of the storage of this volume was requested, so its data may be gone: no claim is bound to it, and with the ' +
    'reclaim policy Delete its deletion continues. To keep the volume, set the policy Retain; if its data still exists, ' +
    `remove the annotation ${DELETION_REQUESTED_ANNOTATION}`,
)

export const noDeleter = (volume: string): EventDetails =>
  warning(
    'VolumeFailedDelete',
    `error getting deleter volume plugin for volume ${quoted(volume)}: no deletable volume plugin matched; ` +
      'delete its storage by hand, then the volume',
  )
export const deleterUnknown = (provisioner: string): EventDetails =>
  warning(
    'VolumeFailedDelete',
    `no volume plugin matched name: ${provisioner}; delete its storage by hand, then the volume`,
  )
export const noRecycler = warning(
  'VolumeFailedRecycle',
  'No recycler plugin found for the volume! Clean it by hand and remove its claimRef to make it available again',
)
export const usedByPods = (pods: readonly string[]): EventDetails =>
  normal('VolumeFailedRecycle', `Volume is used by pods: ${pods.join(',')}`)
export const unknownPolicy = warning(
  'VolumeUnknownReclaimPolicy',
  'Volume has unrecognized PersistentVolumeReclaimPolicy',
)
