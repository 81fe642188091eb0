// Why an attachment cannot be published or unpublished before the driver is called; saved in the attachment's status.
// Errors of the driver are CsiErrors.

export class AttachError extends Error {
  override readonly name = 'AttachError'
  /** A retry does not help; an object must change. */
  readonly isStuck: boolean

  constructor(message: string, { isStuck }: { readonly isStuck: boolean }) {
    super(message)
    this.isStuck = isStuck
  }
}

export const volumeMissing = (volumeName: string): AttachError =>
  new AttachError(`persistentvolume "${volumeName}" not found`, { isStuck: true })

export const volumeReplaced = (volumeName: string): AttachError =>
  new AttachError(
    `persistentvolume "${volumeName}" was recreated with another volumeHandle than the one this attachment was created for. ` +
      'Delete the attachment.',
    { isStuck: true },
  )

export const volumeLost = (volumeName: string): AttachError =>
  new AttachError(
    `persistentvolume "${volumeName}" was deleted, or recreated with another volumeHandle, so the volume to detach is not known. ` +
      "Recreate it with its old volumeHandle, or detach the volume with the storage system's own tools and remove the finalizer.",
    { isStuck: true },
  )

export const volumeBeingDeleted = (volumeName: string): AttachError =>
  new AttachError(`PersistentVolume "${volumeName}" is marked for deletion`, { isStuck: true })

export const notOfDriver = (what: string, driver: string): AttachError =>
  new AttachError(`${what} does not belong to CSI driver ${driver}`, { isStuck: true })

export const nodeUnknown = (nodeName: string, driver: string): AttachError =>
  new AttachError(`CSINode ${nodeName} does not contain driver ${driver}`, { isStuck: true })

export const attachedElsewhere = (volumeName: string, nodeName: string): AttachError =>
  new AttachError(
    `volume ${volumeName} can be attached to one node only and is or may be published on node ${nodeName}; ` +
      'it is attached after it has been detached there',
    { isStuck: true },
  )

export const modesConflict = (because: string): AttachError => new AttachError(because, { isStuck: true })
