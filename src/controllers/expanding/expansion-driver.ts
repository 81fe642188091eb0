// The part of a CSI driver that expansion calls. ../plugin-changes implements it for plugins.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { VolumeCapabilitySchema } from '../../csi/gen/csi_pb.js'
import type { CallOptions } from '../../csi/index.ts'

/** How a driver identifies a volume. A plugin needs no capability. */
export interface ExpandVolumeFields {
  readonly volumeId: string
  readonly volumeCapability?: MessageInitShape<typeof VolumeCapabilitySchema>
}

export interface ExpandVolumeRequest extends ExpandVolumeFields {
  readonly capacityRange: { readonly requiredBytes: bigint; readonly limitBytes?: bigint }
  readonly secrets: Record<string, string>
}

export interface ExpansionDriver {
  readonly controller: {
    controllerExpandVolume(
      request: ExpandVolumeRequest,
      options?: CallOptions,
    ): Promise<{ readonly capacityBytes: bigint; readonly nodeExpansionRequired: boolean }>
  }
}
