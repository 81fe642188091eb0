// Names, annotations and finalizers for attaching volumes. They are part of the API.
import { createHash } from 'node:crypto'

export interface VolumeOnNode {
  readonly driver: string
  /** The CSI volume_id. */
  readonly handle: string
  readonly nodeName: string
}

/**
 * Returns the name of the VolumeAttachment for a volume on a node. The name depends only on the arguments, so a repeated
 * creation conflicts with the existing attachment.
 */
export const attachmentNameOf = ({ driver, handle, nodeName }: VolumeOnNode): string =>
  `csi-${createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')}`

export const isAttachmentName = (name: string): boolean => /^csi-[0-9a-f]{64}$/.test(name)

/** Returns the name of a volume in volumesInUse and volumesAttached of a node's status. */
export const attachedVolumeNameOf = ({ driver, handle }: Pick<VolumeOnNode, 'driver' | 'handle'>): string =>
  `${CSI_VOLUME_PREFIX}${driver}^${handle}`

/** The inverse of attachedVolumeNameOf. Returns undefined for volumes of other plugins. */
export function parseAttachedVolumeName(name: string): Pick<VolumeOnNode, 'driver' | 'handle'> | undefined {
  const separator = name.indexOf('^')
  if (!name.startsWith(CSI_VOLUME_PREFIX) || separator < 0) return undefined
  return { driver: name.slice(CSI_VOLUME_PREFIX.length, separator), handle: name.slice(separator + 1) }
}

const CSI_VOLUME_PREFIX = 'kubernetes.io/csi/'

/** Returns the value of the `volume_plugin` label of metrics. */
export const pluginNameOf = (driver: string): string => `kubernetes.io/csi:${driver}`

/** Returns the finalizer that the attacher sets on attachments and volumes. */
export function attacherFinalizerOf(driver: string): string {
  const name = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  return `external-attacher/${name}${name.endsWith('-') ? 'X' : ''}`
}

/** Annotation of attachments with the driver's ID of the node, which is needed to detach after the CSINode is deleted. */
export const NODE_ID_ANNOTATION = 'csi.alpha.kubernetes.io/node-id'
