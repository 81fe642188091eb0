// The calls of a CSI driver with which volumes are expanded. ../plugin-changes implements them for provisioner plugins.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { VolumeCapabilitySchema } from '../../csi/gen/csi_pb.js'
import type { CallOptions } from '../../csi/index.ts'

/** The fields of ControllerExpandVolume that depend on the volume. A provisioner plugin needs no volumeCapability. */
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
