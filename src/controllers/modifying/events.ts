// The events that a modification records on its claim.
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

export const modifyFailed = (message: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeModifyFailed',
  message,
})

/** `cancelledTarget` is empty if the modification never had a target, for example because its class did not exist. */
export const modifyCanceled = (cancelledTarget: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeModifyCanceled',
  message: cancelledTarget
    ? `Cancelled modify to "${cancelledTarget}": the claim requests the attributes in effect.`
    : 'Cancelled modify: the claim requests the attributes in effect.',
})

/** Formats the message of the event and the condition for a rollback that could not restore attributes. */
export const unrestoredMessage = (attributes: readonly string[]): string =>
  `The modification was cancelled, but the driver may have applied it: the previous values of ${attributes.join(', ')} are ` +
  `not known, so they were not restored. Set a VolumeAttributesClass that has these attributes to give them known values.`

export const rollbackImpossibleMessage = (volumeName: string): string =>
  `The driver does not have volume ${volumeName}, so no attributes were restored`
