// Converts the access modes and the volume mode of a claim to CSI volume capabilities. Pure.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapabilitySchema } from '../../../csi/gen/csi_pb.js'
import { finalError } from './preparation-error.ts'

export type VolumeCapability = MessageInitShape<typeof VolumeCapabilitySchema>

export interface CapabilityOptions {
  readonly fsType: string
  readonly mountOptions: readonly string[]
  /** Whether the driver reports SINGLE_NODE_MULTI_WRITER. */
  readonly supportsSingleNodeMultiWriter: boolean
}

const DEFAULT_MODES: Readonly<Record<string, Mode>> = {
  ReadWriteMany: Mode.MULTI_NODE_MULTI_WRITER,
  ReadOnlyMany: Mode.MULTI_NODE_READER_ONLY,
  ReadWriteOnce: Mode.SINGLE_NODE_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_WRITER,
}

const MULTI_WRITER_MODES: Readonly<Record<string, Mode>> = {
  ...DEFAULT_MODES,
  ReadWriteOnce: Mode.SINGLE_NODE_MULTI_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_SINGLE_WRITER,
}

export function volumeCapabilities(
  { spec }: Readonly<PersistentVolumeClaim>,
  { fsType, mountOptions, supportsSingleNodeMultiWriter }: CapabilityOptions,
): VolumeCapability[] {
  const modes = supportsSingleNodeMultiWriter ? MULTI_WRITER_MODES : DEFAULT_MODES
  const accessType: VolumeCapability['accessType'] =
    spec?.volumeMode === 'Block'
      ? { case: 'block', value: {} }
      : { case: 'mount', value: { fsType, mountFlags: [...mountOptions] } }
  const requestedModes = spec?.accessModes ?? []
  if (requestedModes.length === 0)
    throw finalError('the claim names no access mode, but CreateVolume needs at least one')
  return requestedModes.map((name) => {
    if (!Object.hasOwn(modes, name)) throw finalError(`invalid access mode: ${name}`)
    return { accessType, accessMode: { mode: modes[name]! } }
  })
}
