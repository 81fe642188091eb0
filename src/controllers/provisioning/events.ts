// Everything that provisioning and deleting tell people, in the words they know from other provisioners.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { Happening } from '../../runtime/index.ts'
import type { Failure } from './provisioner.ts'

type Claim = Readonly<PersistentVolumeClaim>

export const provisioning = (claim: Claim): Happening => ({
  type: 'Normal',
  reason: 'Provisioning',
  message: `External provisioner is provisioning volume for claim "${keyOfObject(claim)}"`,
})

export const provisioned = (volumeName: string, plugin: string | undefined): Happening => ({
  type: 'Normal',
  reason: 'ProvisioningSucceeded',
  message: `Successfully provisioned volume ${volumeName}${plugin === undefined ? '' : ` using ${plugin}`}`,
})

export const cannotProvision = (because: string): Happening => failed(because)

export const provisioningFailed = (how: Failure, because: string): Happening =>
  failed(
    how === 'infeasible'
      ? `Volume provisioning failed with infeasible error. Retries will be delayed. ${because}`
      : because,
  )

/** Of a claim that is being deleted, and waits: for what, and how to end it. */
export function heldBecause(because: string, { volumeName, intent }: Held): string {
  const why = because.length > REASON_CHARACTERS_MAX ? `${because.slice(0, REASON_CHARACTERS_MAX)}…` : because
  return (
    `${why.replace(/\.?$/, '.')} The claim cannot go before it is known whether its volume exists; that is asked again ` +
    `and again. If there will never be an answer, ${howToGiveUp({ volumeName, intent })}`
  )
}

/** Whose end nobody here can find out. */
export const howToGiveUp = ({ volumeName, intent }: Held): string =>
  `look for "${volumeName}" in the storage, delete it there, and take the finalizer "${intent}" off the claim.`

interface Held {
  readonly volumeName: string
  readonly intent: string
}

/** So that what to do about it is not cut off. */
const REASON_CHARACTERS_MAX = 500

/** The claim has another volume by now, or is going: what was made for it is reclaimed like any other. */
export const notNeeded = (volumeName: string, why: string, isDeleted: boolean): Happening => ({
  type: 'Normal',
  reason: 'ProvisionedVolumeNotNeeded',
  message: `Volume ${volumeName} was made for this claim and is not needed: ${why}. It is ${isDeleted ? 'deleted' : 'kept, as its reclaim policy says'}.`,
})

export const savingFailed = (claim: Claim, because: string, isLast: boolean): Happening =>
  failed(
    `Error creating provisioned PV object for claim ${keyOfObject(claim)}: ${because}. ` +
      (isLast ? 'Deleting the volume.' : 'Trying again.'),
  )

export const cleanupFailed = (claim: Claim, volumeName: string, because: string): Happening => ({
  type: 'Warning',
  reason: 'ProvisioningCleanupFailed',
  message:
    `Error cleaning provisioned volume for claim ${keyOfObject(claim)}: ${because}. ` +
    `Trying again; until then volume "${volumeName}" takes up storage.`,
})

export const deletingFailed = (because: string): Happening => ({
  type: 'Warning',
  reason: 'VolumeFailedDelete',
  message: because,
})

const failed = (message: string): Happening => ({ type: 'Warning', reason: 'ProvisioningFailed', message })
