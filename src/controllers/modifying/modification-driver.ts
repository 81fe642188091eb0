// The part of a CSI driver that modification calls. ../plugin-changes implements it for plugins.
import type { CallOptions } from '../../csi/index.ts'

interface ModifyVolumeRequest {
  readonly volumeId: string
  readonly secrets: Record<string, string>
  readonly mutableParameters: Record<string, string>
}

export interface ModificationDriver {
  readonly controller: {
    controllerModifyVolume(request: ModifyVolumeRequest, options?: CallOptions): Promise<unknown>
  }
}
