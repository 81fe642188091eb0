// Computes the VolumeCapability of a volume, which is the same for NodeStageVolume, NodePublishVolume and NodeExpandVolume.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapabilitySchema } from '../../csi/gen/csi_pb.js'
import type { NodeCapability } from '../../csi/index.ts'
import type { CsiVolume } from './csi-volume.ts'

export type Capability = MessageInitShape<typeof VolumeCapabilitySchema>

export function capabilityOf(
  { mode, fsType, mountOptions, accessMode }: CsiVolume,
  { capabilities, group }: { readonly capabilities: ReadonlySet<NodeCapability>; readonly group: number | undefined },
): Capability {
  const modes = capabilities.has('SINGLE_NODE_MULTI_WRITER') ? SINGLE_NODE_MULTI_WRITER_MODES : MODES
  const volumeMountGroup = group !== undefined && capabilities.has('VOLUME_MOUNT_GROUP') ? String(group) : ''
  return {
    accessMode: { mode: modes[accessMode] ?? Mode.SINGLE_NODE_WRITER },
    accessType:
      mode === 'Block'
        ? { case: 'block', value: {} }
        : { case: 'mount', value: { fsType, mountFlags: [...mountOptions], volumeMountGroup } },
  }
}

const MODES: Readonly<Record<string, Mode>> = {
  ReadWriteOnce: Mode.SINGLE_NODE_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_WRITER,
  ReadOnlyMany: Mode.MULTI_NODE_READER_ONLY,
  ReadWriteMany: Mode.MULTI_NODE_MULTI_WRITER,
}

const SINGLE_NODE_MULTI_WRITER_MODES: Readonly<Record<string, Mode>> = {
  ...MODES,
  ReadWriteOnce: Mode.SINGLE_NODE_MULTI_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_SINGLE_WRITER,
}
