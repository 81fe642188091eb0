// Builds the events of provisioning and deletion, with the reasons of external-provisioner where it has them.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Failure } from './provisioner.ts'

type Claim = Readonly<PersistentVolumeClaim>

/** Reports a call to the storage that takes a long time or is repeated. */
export const provisioningEvent = (claim: Claim): EventDetails => ({
  type: 'Normal',
  reason: 'Provisioning',
  message: `External provisioner is provisioning volume for claim "${keyOfObject(claim)}"`,
})

export const provisionedEvent = (volumeName: string, plugin: string | undefined): EventDetails => ({
  type: 'Normal',
  reason: 'ProvisioningSucceeded',
  message: `Successfully provisioned volume ${volumeName}${plugin === undefined ? '' : ` using ${plugin}`}`,
})

export const cannotProvisionEvent = (message: string): EventDetails => failedEvent(message)

export const provisionFailedEvent = (failure: Failure, message: string): EventDetails =>
  failedEvent(
    failure === 'infeasible'
      ? `Volume provisioning failed with infeasible error. Retries will be delayed. ${message}`
      : message,
  )

/** Returns a message for a claim that is being deleted: why it is kept and what an operator can do. */
export function explainHeldClaim(message: string, heldClaim: HeldClaim): string {
  const reason = message.length > REASON_CHARACTERS_MAX ? `${message.slice(0, REASON_CHARACTERS_MAX)}…` : message
  return (
    `${reason.replace(/\.?$/, '.')} The claim is kept until it is known whether its volume exists; the call is ` +
    `repeated. If the storage will never respond, ${manualCleanup(heldClaim)}`
  )
}

/** Returns instructions for a volume whose state cannot be determined. */
export const manualCleanup = ({ volumeName, intentFinalizer, entry }: HeldClaim): string =>
  `look for "${volumeName}" in the storage, delete it there with its data, and remove ` +
  `${entry ?? `the finalizer "${intentFinalizer}" from the claim`}.`

interface HeldClaim {
  readonly volumeName: string
  /** The finalizer that records the intent. */
  readonly intentFinalizer: string
  /** What to remove instead if the intent is not a finalizer. */
  readonly entry?: string
}

/** Leaves space for the instructions within the length limit of event messages. */
const REASON_CHARACTERS_MAX = 500

/** Reports that the provisioned volume is reclaimed, because the claim is bound to another volume or being deleted. */
export const notNeededEvent = (volumeName: string, reason: string, hasDeletePolicy: boolean): EventDetails => ({
  type: 'Normal',
  reason: 'ProvisionedVolumeNotNeeded',
  message: `Volume ${volumeName} was provisioned for this claim and is not needed: ${reason}. The volume is ${hasDeletePolicy ? 'deleted' : 'kept, because its reclaim policy is not Delete'}.`,
})

export const saveFailedEvent = (claim: Claim, message: string, isLast: boolean): EventDetails =>
  failedEvent(
    `Error creating provisioned PV object for claim ${keyOfObject(claim)}: ${message}. ` +
      (isLast ? 'Deleting the volume.' : 'Retrying.'),
  )

export const cleanupFailedEvent = (claim: Claim, volumeName: string, message: string): EventDetails => ({
  type: 'Warning',
  reason: 'ProvisioningCleanupFailed',
  message:
    `Error cleaning provisioned volume for claim ${keyOfObject(claim)}: ${message}. ` +
    `Retrying; until then volume "${volumeName}" occupies storage.`,
})

export const deleteFailedEvent = (message: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeFailedDelete',
  message,
})

const failedEvent = (message: string): EventDetails => ({ type: 'Warning', reason: 'ProvisioningFailed', message })
