// Converts a volume spec into the fields of a ControllerPublishVolume request. Pure.
// reconcile-attachment.ts adds the secrets and sends the request.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapabilitySchema } from '../../../csi/gen/csi_pb.js'
import type { DriverFacts } from '../../../csi/index.ts'
import { accessModesUnsupported } from './attach-error.ts'

type Capability = MessageInitShape<typeof VolumeCapabilitySchema>

export interface PublishRequest {
  readonly volumeId: string
  readonly readonly: boolean
  readonly volumeCapability: Capability
  readonly volumeContext: Readonly<Record<string, string>>
}

/** Throws an AttachError if CSI cannot express the volume's access modes. */
export function buildPublishRequest(
  spec: Readonly<PersistentVolumeSpec>,
  { controller }: Pick<DriverFacts, 'controller'>,
  defaultFsType: string,
): PublishRequest {
  const { csi, volumeMode, mountOptions = [], accessModes = [] } = spec
  const accessType: Capability['accessType'] =
    volumeMode === 'Block'
      ? { case: 'block', value: {} }
      : { case: 'mount', value: { fsType: csi?.fsType || defaultFsType, mountFlags: [...mountOptions] } }
  const mode = accessModeOf(new Set(accessModes), controller.has('SINGLE_NODE_MULTI_WRITER'))
  return {
    volumeId: csi?.volumeHandle ?? '',
    readonly: (csi?.readOnly ?? false) && controller.has('PUBLISH_READONLY'),
    volumeCapability: { accessType, accessMode: { mode } },
    volumeContext: { ...csi?.volumeAttributes },
  }
}

function accessModeOf(modes: ReadonlySet<string>, hasSingleNodeMultiWriter: boolean): Mode {
  if (modes.has('ReadWriteOncePod')) {
    if (modes.size > 1) {
      throw accessModesUnsupported('ReadWriteOncePod cannot be combined with other access modes on one volume')
    }
    return hasSingleNodeMultiWriter ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER
  }
  if (modes.has('ReadWriteMany')) return Mode.MULTI_NODE_MULTI_WRITER
  if (modes.has('ReadOnlyMany')) {
    if (modes.has('ReadWriteOnce')) {
      throw accessModesUnsupported('CSI does not support ReadOnlyMany and ReadWriteOnce on the same PersistentVolume')
    }
    return Mode.MULTI_NODE_READER_ONLY
  }
  if (modes.has('ReadWriteOnce'))
    return hasSingleNodeMultiWriter ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER
  throw accessModesUnsupported(`unsupported access modes: ${[...modes].join(', ') || 'none'}`)
}
