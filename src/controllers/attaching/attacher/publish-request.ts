// An attachment in the driver's words: which volume, for which use. Facts only; credentials and calls are
// reconcile-attachment.ts.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapabilitySchema } from '../../../csi/gen/csi_pb.js'
import type { DriverFacts } from '../../../csi/index.ts'
import { modesConflict } from './trouble.ts'

type Capability = MessageInitShape<typeof VolumeCapabilitySchema>

export interface PublishFacts {
  readonly volumeId: string
  readonly readonly: boolean
  readonly volumeCapability: Capability
  readonly volumeContext: Readonly<Record<string, string>>
}

/** Throws a Trouble when the volume's access modes cannot be said. */
export function publishFacts(
  spec: Readonly<PersistentVolumeSpec>,
  { controller }: Pick<DriverFacts, 'controller'>,
  defaultFsType: string,
): PublishFacts {
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

/** A volume may offer several modes; the driver is told the widest. */
function accessModeOf(modes: ReadonlySet<string>, tellsPodsApart: boolean): Mode {
  if (modes.has('ReadWriteOncePod')) {
    if (modes.size > 1) throw modesConflict('ReadWriteOncePod cannot be combined with other access modes on one volume')
    return tellsPodsApart ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER
  }
  if (modes.has('ReadWriteMany')) return Mode.MULTI_NODE_MULTI_WRITER
  if (modes.has('ReadOnlyMany')) {
    if (modes.has('ReadWriteOnce')) {
      throw modesConflict('CSI does not support ReadOnlyMany and ReadWriteOnce on the same PersistentVolume')
    }
    return Mode.MULTI_NODE_READER_ONLY
  }
  if (modes.has('ReadWriteOnce')) return tellsPodsApart ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER
  throw modesConflict(`unsupported access modes: ${[...modes].join(', ') || 'none'}`)
}
