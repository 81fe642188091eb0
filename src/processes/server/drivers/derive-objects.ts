// Derives a driver's CSIDriver and StorageClass from its capabilities. Sets every field that has a default value, so that
// write-objects.ts can detect changes by a user. Pure.
//
//   PUBLISH_UNPUBLISH_VOLUME                     attachRequired
//   GET_CAPACITY                                 storageCapacity
//   VOLUME_MOUNT_GROUP                           fsGroupPolicy None, because the driver applies the group; otherwise File
//   VOLUME_ACCESSIBILITY_CONSTRAINTS             volumeBindingMode WaitForFirstConsumer
//   EXPAND_VOLUME of the controller or the node  allowVolumeExpansion
//   CREATE_DELETE_VOLUME                         without it, the driver gets no class
import type { CSIDriverSpec } from '../../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { DriverFacts } from '../../../csi/index.ts'

export interface DerivedObjects {
  readonly csiDriver: DerivedDriverSpec
  /** Undefined if the driver cannot create volumes. */
  readonly storageClass: DerivedClass | undefined
}

export type DerivedDriverSpec = Required<
  Pick<
    CSIDriverSpec,
    | 'attachRequired'
    | 'podInfoOnMount'
    | 'volumeLifecycleModes'
    | 'storageCapacity'
    | 'fsGroupPolicy'
    | 'requiresRepublish'
    | 'seLinuxMount'
    | 'preventPodSchedulingIfMissing'
  >
>

export type DerivedClass = Required<
  Pick<StorageClass, 'provisioner' | 'reclaimPolicy' | 'volumeBindingMode' | 'allowVolumeExpansion'>
>

export function deriveObjects({ name, plugin, controller, node }: DriverFacts): DerivedObjects {
  return {
    csiDriver: {
      attachRequired: controller.has('PUBLISH_UNPUBLISH_VOLUME'),
      podInfoOnMount: false,
      volumeLifecycleModes: ['Persistent'],
      storageCapacity: controller.has('GET_CAPACITY'),
      fsGroupPolicy: node.has('VOLUME_MOUNT_GROUP') ? 'None' : 'File',
      requiresRepublish: false,
      seLinuxMount: false,
      preventPodSchedulingIfMissing: true, // the driver may run on some of the nodes only
    },
    storageClass: controller.has('CREATE_DELETE_VOLUME')
      ? {
          provisioner: name,
          reclaimPolicy: 'Delete',
          volumeBindingMode: plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS') ? 'WaitForFirstConsumer' : 'Immediate',
          allowVolumeExpansion: controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME'),
        }
      : undefined,
  }
}

/** Describes the driver's capabilities in words, for the command's output. */
export function describeCapabilities({ controller, node, expansion }: DriverFacts): string[] {
  const canExpand = controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME')
  const isOffline = expansion.has('OFFLINE') && !expansion.has('ONLINE')
  return [
    ...(controller.has('CREATE_DELETE_VOLUME') ? ['create'] : []),
    ...(controller.has('PUBLISH_UNPUBLISH_VOLUME') ? ['attach'] : []),
    ...(node.has('STAGE_UNSTAGE_VOLUME') ? ['stage'] : []),
    ...(canExpand ? [isOffline ? 'expand while not in use' : 'expand'] : []),
    ...(controller.has('MODIFY_VOLUME') ? ['modify attributes'] : []),
    ...(controller.has('GET_CAPACITY') ? ['report capacity'] : []),
    ...(controller.has('CLONE_VOLUME') ? ['clone'] : []),
    ...(controller.has('CREATE_DELETE_SNAPSHOT') ? ['snapshot'] : []),
    ...(node.has('GET_VOLUME_STATS') ? ['report usage'] : []),
    ...(node.has('VOLUME_MOUNT_GROUP') ? ['apply fsGroup'] : []),
  ]
}
