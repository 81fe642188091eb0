// Names of VolumeAttachments and of attached volumes. Kubelets, schedulers and external attachers derive the same names
// from the same input, so their spelling is part of the API.
import { createHash } from 'node:crypto'

export interface VolumeOnNode {
  readonly driver: string
  /** The volume_id of CSI. */
  readonly handle: string
  readonly nodeName: string
}

/** The VolumeAttachment of a volume on a node. The name is deterministic, so creating it twice finds the first one. */
export const attachmentNameOf = ({ driver, handle, nodeName }: VolumeOnNode): string =>
  `csi-${createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')}`

export const isAttachmentName = (name: string): boolean => /^csi-[0-9a-f]{64}$/.test(name)

/** A volume in the volumesInUse and volumesAttached of a node's status. */
export const attachedVolumeNameOf = ({ driver, handle }: Pick<VolumeOnNode, 'driver' | 'handle'>): string =>
  `${CSI_VOLUME_PREFIX}${driver}^${handle}`

/** The inverse of attachedVolumeNameOf; undefined for volumes of other plugins. */
export function parseAttachedVolumeName(name: string): Pick<VolumeOnNode, 'driver' | 'handle'> | undefined {
  const at = name.indexOf('^')
  if (!name.startsWith(CSI_VOLUME_PREFIX) || at < 0) return undefined
  return { driver: name.slice(CSI_VOLUME_PREFIX.length, at), handle: name.slice(at + 1) }
}

const CSI_VOLUME_PREFIX = 'kubernetes.io/csi/'

/** The value of the `volume_plugin` label of metrics. */
export const pluginNameOf = (driver: string): string => `kubernetes.io/csi:${driver}`

/** On attachments and volumes until the volume is known to be unpublished. */
export function attacherFinalizerOf(driver: string): string {
  const name = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  return `external-attacher/${name}${name.endsWith('-') ? 'X' : ''}`
}

/** On attachments: the driver's id of the node, for detaching after the CSINode was deleted. */
export const NODE_ID_ANNOTATION = 'csi.alpha.kubernetes.io/node-id'

/** Set by an operator who guarantees that nothing runs on the node any more. */
export const OUT_OF_SERVICE_TAINT = 'node.kubernetes.io/out-of-service'
