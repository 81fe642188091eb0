// Errors that prevent a call to the driver until an object has changed. Errors that the driver returns are CsiErrors.

import type { AwaitedObject } from '../../../base/operation-details.ts'
import type { Attachment } from '../attachment-index.ts'

export class AttachError extends Error {
  override readonly name = 'AttachError'
  /** The object that has to change, if it is known. */
  readonly waitsFor: AwaitedObject | undefined

  constructor(message: string, waitsFor?: AwaitedObject) {
    super(message)
    this.waitsFor = waitsFor
  }
}

const volumeRef = (name: string): AwaitedObject => ({ kind: 'PersistentVolume', name })

export const volumeMissing = (volumeName: string): AttachError =>
  new AttachError(`persistentvolume "${volumeName}" not found`, volumeRef(volumeName))

export const volumeReplaced = (volumeName: string): AttachError =>
  new AttachError(
    `persistentvolume "${volumeName}" was recreated with another volumeHandle since this attachment was created. ` +
      'Delete the attachment.',
  )

export const volumeLost = (volumeName: string): AttachError =>
  new AttachError(
    `persistentvolume "${volumeName}" was deleted, or recreated with another volumeHandle, so the volumeHandle to detach is unknown. ` +
      "Recreate it with its old volumeHandle, or detach the volume with the storage system's own tools and remove the finalizer.",
    volumeRef(volumeName),
  )

export const volumeBeingDeleted = (volumeName: string): AttachError =>
  new AttachError(`PersistentVolume "${volumeName}" is marked for deletion`)

export const driverMismatch = (subject: string, driver: string): AttachError =>
  new AttachError(`${subject} does not belong to CSI driver ${driver}`)

export const driverNotOnNode = (nodeName: string, driver: string): AttachError =>
  new AttachError(`CSINode ${nodeName} does not contain driver ${driver}`, { kind: 'CSINode', name: nodeName })

/** `attachment` is the volume's attachment to the other node. */
export const attachedToOtherNode = (volumeName: string, attachment: Attachment): AttachError =>
  new AttachError(
    `volume ${volumeName} can be attached to one node only and may still be published on node ${attachment.spec.nodeName}; ` +
      'it is attached after it has been detached from that node',
    { kind: 'VolumeAttachment', name: attachment.metadata.name },
  )

export const accessModesUnsupported = (message: string): AttachError => new AttachError(message)
