// Everything that provisioning and deleting tell people, in the words they know from other provisioners.
import type { PersistentVolumeClaim } from '../../api/types/claim.ts'
import { type Happening, keyOfObject } from '../../client/index.ts'
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
