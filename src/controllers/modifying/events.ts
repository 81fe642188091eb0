// The events of modification, with the messages of external-resizer for classes and of the KEP for iops and throughput.
import type { EventDetails } from '../../runtime/index.ts'
import { formatIo, type IoName, type Target } from './target.ts'

export const classModifyStarted = (claimName: string, className: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModify',
  message: `external resizer is modifying volume ${claimName} with vac ${className}`,
})

export const classModifySucceeded = (claimName: string, className: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifySuccessful',
  message: `external resizer modified volume ${claimName} with vac ${className} successfully`,
})

export const ioModifyStarted = (claimName: string, target: Target, names: readonly IoName[]): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifyInProgress',
  message: `modifying volume ${claimName} to ${describeIo(target, names)}`,
})

export const ioModifySucceeded = (claimName: string, target: Target, names: readonly IoName[]): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifySuccess',
  message: `modified volume ${claimName} to ${describeIo(target, names)} successfully`,
})

const describeIo = (target: Target, names: readonly IoName[]): string =>
  formatIo(target, names) || `the ${names.join(' and ')} of its class`

export const modifyFailed = (because: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeModifyFailed',
  message: because,
})

export const modifyCanceled: EventDetails = {
  type: 'Normal',
  reason: 'VolumeModifyCanceled',
  message: 'Cancelled modify.',
}

/** Recorded if the user removed the class during the call and the previous attributes are unknown. */
export const cancelFailed = (className: string): EventDetails =>
  modifyFailed(
    `The modification to VAC ${className} could not be cancelled: the driver may have applied it, and the volume's ` +
      `previous attributes are not known. It was completed; set another VolumeAttributesClass to change it.`,
  )
