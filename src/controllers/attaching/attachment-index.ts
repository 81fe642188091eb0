// Cache indexes of attachments and volumes, and predicates on attachments, volumes and drivers.
import type { Stored } from '../../api/kind.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { attachmentNameOf, isAttachmentName } from '../../volumes/attachment-names.ts'

export type Attachment = Readonly<Stored<VolumeAttachment>>
export type Volume = Readonly<Stored<PersistentVolume>>

const BY_VOLUME = 'attaching/volume'
const BY_NODE = 'attaching/node'
const BY_HANDLE = 'attaching/handle'
const INLINE_BY_HANDLE = 'attaching/inline handle'
const BY_DRIVER = 'attaching/driver'

export function indexAttachments(attachments: Cache<VolumeAttachment>): void {
  attachments.addIndex(BY_VOLUME, volumeNamesOf)
  attachments.addIndex(BY_NODE, nodeNamesOf)
  attachments.addIndex(INLINE_BY_HANDLE, inlineHandlesOf)
}

export function indexVolumes(volumes: Cache<PersistentVolume>): void {
  volumes.addIndex(BY_HANDLE, handlesOf)
  volumes.addIndex(BY_DRIVER, driversOf)
}

export const attachmentsOfVolume = (attachments: Cache<VolumeAttachment>, volumeName: string): readonly Attachment[] =>
  attachments.byIndex(BY_VOLUME, volumeName)

export const attachmentsOnNode = (attachments: Cache<VolumeAttachment>, nodeName: string): readonly Attachment[] =>
  attachments.byIndex(BY_NODE, nodeName)

/** Returns the attachments of the volumeHandle, including those of other PersistentVolumes and inline volumes. */
export function attachmentsOfHandle(
  spec: Readonly<PersistentVolumeSpec>,
  { attachments, volumes }: { attachments: Cache<VolumeAttachment>; volumes: Cache<PersistentVolume> },
): Attachment[] {
  return handlesIn(spec).flatMap((handle) => [
    ...volumes.byIndex(BY_HANDLE, handle).flatMap(({ metadata }) => attachmentsOfVolume(attachments, metadata.name)),
    ...attachments.byIndex(INLINE_BY_HANDLE, handle),
  ])
}

export const volumesOfDriver = (volumes: Cache<PersistentVolume>, driver: string): readonly Volume[] =>
  volumes.byIndex(BY_DRIVER, driver)

export const volumeNamesOf = ({ spec }: Attachment): string[] =>
  spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : []

const nodeNamesOf = ({ spec }: Attachment): string[] => [spec.nodeName]
const driversOf = ({ spec }: Volume): string[] => (spec?.csi ? [spec.csi.driver] : [])
const handlesOf = ({ spec }: Volume): string[] => (spec ? handlesIn(spec) : [])
const inlineHandlesOf = ({ spec }: Attachment): string[] =>
  spec.source.inlineVolumeSpec ? handlesIn(spec.source.inlineVolumeSpec) : []
const handlesIn = ({ csi }: Readonly<PersistentVolumeSpec>): string[] =>
  csi ? [`${csi.driver}^${csi.volumeHandle}`] : []

/**
 * Whether the attachment was created for this volume and not for a deleted one with the same name. The attachment's name
 * contains a hash of the volumeHandle. An attachment that a user created, under another name, belongs to any volume that
 * it references.
 */
export function belongsTo({ metadata: { name }, spec }: Attachment, volume: Volume): boolean {
  const { csi } = volume.spec ?? {}
  if (!csi || !isAttachmentName(name)) return true
  return name === attachmentNameOf({ driver: spec.attacher, handle: csi.volumeHandle, nodeName: spec.nodeName })
}

export const isBeingDeleted = ({ metadata }: Attachment | Volume): boolean => metadata.deletionTimestamp !== undefined

export const isAttached = ({ status }: Attachment): boolean => status?.attached === true

/** Whether the volume can be attached to one node at a time only. */
export const isSingleNode = ({ accessModes = [] }: Pick<PersistentVolumeSpec, 'accessModes'>): boolean =>
  !accessModes.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany')

/** A driver without a CSIDriver object requires attachment. */
export const needsAttach = (driver: Readonly<CSIDriver> | undefined): boolean => driver?.spec.attachRequired !== false
