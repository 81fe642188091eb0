// Everything that changing attributes tells people: in upstream's words for classes, in the document's for iops and
// throughput.
import type { Happening } from '../../runtime/index.ts'
import { type IoName, ioText, type Target } from './target.ts'

export const changingClass = (claimName: string, className: string): Happening => ({
  type: 'Normal',
  reason: 'VolumeModify',
  message: `external resizer is modifying volume ${claimName} with vac ${className}`,
})

export const changedClass = (claimName: string, className: string): Happening => ({
  type: 'Normal',
  reason: 'VolumeModifySuccessful',
  message: `external resizer modified volume ${claimName} with vac ${className} successfully`,
})

export const changingIo = (claimName: string, target: Target, names: readonly IoName[]): Happening => ({
  type: 'Normal',
  reason: 'VolumeModifyInProgress',
  message: `modifying volume ${claimName} to ${ioWords(target, names)}`,
})

export const changedIo = (claimName: string, target: Target, names: readonly IoName[]): Happening => ({
  type: 'Normal',
  reason: 'VolumeModifySuccess',
  message: `modified volume ${claimName} to ${ioWords(target, names)} successfully`,
})

const ioWords = (target: Target, names: readonly IoName[]): string =>
  ioText(target, names) || `the ${names.join(' and ')} of its class`

export const modifyFailed = (because: string): Happening => ({
  type: 'Warning',
  reason: 'VolumeModifyFailed',
  message: because,
})

export const canceled: Happening = { type: 'Normal', reason: 'VolumeModifyCanceled', message: 'Cancelled modify.' }

/** The change was taken back while the driver was at it, and nobody knows what there was to go back to. */
export const tooLateToCancel = (className: string): Happening =>
  modifyFailed(
    `The change to VAC ${className} could not be cancelled: the driver may have made it already, and what the volume had ` +
      `before is not known. It has been finished; name another VolumeAttributesClass to change it.`,
  )
