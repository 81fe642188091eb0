// Why an attachment could not be worked on: thrown by the steps that prepare a call of the driver, and written on the
// attachment. What the driver itself answers is a CsiError.

export class Trouble extends Error {
  override readonly name = 'Trouble'
  /** Only a change of some object helps; trying again does not. */
  readonly isStuck: boolean

  constructor(message: string, { isStuck }: { readonly isStuck: boolean }) {
    super(message)
    this.isStuck = isStuck
  }
}

export const volumeMissing = (volumeName: string): Trouble =>
  new Trouble(`persistentvolume "${volumeName}" not found`, { isStuck: true })

export const volumeReplaced = (volumeName: string): Trouble =>
  new Trouble(
    `persistentvolume "${volumeName}" has another volumeHandle than the one that this attachment was made for; ` +
      'it is not attached by it. Delete the attachment if nobody else does.',
    { isStuck: true },
  )

export const volumeLost = (volumeName: string): Trouble =>
  new Trouble(
    `persistentvolume "${volumeName}" is gone, or made again with another volumeHandle, and with it the name by which the driver knows the volume. ` +
      "Create it again as it was, or detach the volume by the storage's own means and remove the finalizer.",
    { isStuck: true },
  )

export const volumeGoing = (volumeName: string): Trouble =>
  new Trouble(`PersistentVolume "${volumeName}" is marked for deletion`, { isStuck: true })

export const notOfDriver = (what: string, driver: string): Trouble =>
  new Trouble(`${what} is no volume of the CSI driver ${driver}`, { isStuck: true })

export const nodeUnknown = (nodeName: string, driver: string): Trouble =>
  new Trouble(`CSINode ${nodeName} does not contain driver ${driver}`, { isStuck: true })

export const attachedElsewhere = (volumeName: string, nodeName: string): Trouble =>
  new Trouble(
    `volume ${volumeName} may be on one node only, and is or may be published on node ${nodeName}; ` +
      'it is attached here when it is detached there',
    { isStuck: true },
  )

export const modesConflict = (because: string): Trouble => new Trouble(because, { isStuck: true })
