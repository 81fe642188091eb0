// The events of modification: in external-resizer's wording for classes, in KEP wording for iops and throughput.
import type { EventDetails } from '../../runtime/index.ts'
import { type IoName, ioText, type Target } from './target.ts'

export const changingClass = (claimName: string, className: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModify',
  message: `external resizer is modifying volume ${claimName} with vac ${className}`,
})

export const changedClass = (claimName: string, className: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifySuccessful',
  message: `external resizer modified volume ${claimName} with vac ${className} successfully`,
})

export const changingIo = (claimName: string, target: Target, names: readonly IoName[]): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifyInProgress',
  message: `modifying volume ${claimName} to ${ioWords(target, names)}`,
})

export const changedIo = (claimName: string, target: Target, names: readonly IoName[]): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifySuccess',
  message: `modified volume ${claimName} to ${ioWords(target, names)} successfully`,
})

const ioWords = (target: Target, names: readonly IoName[]): string =>
  ioText(target, names) || `the ${names.join(' and ')} of its class`

export const modifyFailed = (because: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeModifyFailed',
  message: because,
})

export const canceled: EventDetails = { type: 'Normal', reason: 'VolumeModifyCanceled', message: 'Cancelled modify.' }

/** The user removed the class during the call, and the previous attributes are not known. */
export const tooLateToCancel = (className: string): EventDetails =>
  modifyFailed(
    `The modification to VAC ${className} could not be cancelled: the driver may have applied it, and the volume's ` +
      `previous attributes are not known. It was completed; set another VolumeAttributesClass to change it.`,
  )
