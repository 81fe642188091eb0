// What attachments and attached volumes are called. Node agents, schedulers and attachers of other people derive the
// same names from the same facts, so their spelling is part of the API.
import { createHash } from 'node:crypto'

export interface VolumeOnNode {
  readonly driver: string
  /** The driver's name for the volume. */
  readonly handle: string
  readonly nodeName: string
}

/** The VolumeAttachment of a volume on a node. Whoever makes it a second time finds the first. */
export const attachmentNameOf = ({ driver, handle, nodeName }: VolumeOnNode): string =>
  `csi-${createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')}`

export const isAttachmentName = (name: string): boolean => /^csi-[0-9a-f]{64}$/.test(name)

/** A volume in the volumesInUse and volumesAttached of a node's status. */
export const attachedVolumeNameOf = ({ driver, handle }: Pick<VolumeOnNode, 'driver' | 'handle'>): string =>
  `${CSI_VOLUME}${driver}^${handle}`

/** What an attached volume's name says; undefined for those of other plugins. */
export function parseAttachedVolumeName(name: string): Pick<VolumeOnNode, 'driver' | 'handle'> | undefined {
  const at = name.indexOf('^')
  if (!name.startsWith(CSI_VOLUME) || at < 0) return undefined
  return { driver: name.slice(CSI_VOLUME.length, at), handle: name.slice(at + 1) }
}

const CSI_VOLUME = 'kubernetes.io/csi/'

/** Metrics name a driver's volumes this way. */
export const pluginNameOf = (driver: string): string => `kubernetes.io/csi:${driver}`

/** Holds attachments and volumes until the volume is unpublished for certain. */
export function attacherFinalizerOf(driver: string): string {
  const name = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  return `external-attacher/${name}${name.endsWith('-') ? 'X' : ''}`
}

/** On attachments: the name of the node that the volume was published with. The CSINode may be gone when it is needed. */
export const NODE_ID = 'csi.alpha.kubernetes.io/node-id'

/** Whoever put this on a node vouches that nothing runs there any more. */
export const OUT_OF_SERVICE_TAINT = 'node.kubernetes.io/out-of-service'
