// Decides by the driver's fsGroupPolicy whether the agent must apply the pod's fsGroup to a volume. Pure.

import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { NodeCapability } from '../../csi/index.ts'
import type { GroupOptions } from '../disk/disk.ts'
import type { CsiVolume } from './csi-volume.ts'

export const groupOfPod = ({ spec }: Readonly<Pod>): number | undefined => spec?.securityContext?.fsGroup

/** Returns undefined if the agent does not have to change the ownership. */
export function ownershipChange(
  pod: Readonly<Pod>,
  volume: CsiVolume,
  {
    csiDriver,
    capabilities,
  }: { readonly csiDriver?: Readonly<CSIDriver>; readonly capabilities: ReadonlySet<NodeCapability> },
): GroupOptions | undefined {
  const group = groupOfPod(pod)
  if (group === undefined || volume.mode === 'Block' || volume.readOnly) return undefined
  if (capabilities.has('VOLUME_MOUNT_GROUP')) return undefined // the driver applies the group itself
  const policy = csiDriver?.spec.fsGroupPolicy ?? 'ReadWriteOnceWithFSType'
  const isSingleNode = SINGLE_NODE_MODES.some((mode) => volume.pv?.spec?.accessModes?.includes(mode))
  const applies = policy === 'File' || (policy === 'ReadWriteOnceWithFSType' && volume.fsType !== '' && isSingleNode)
  if (!applies) return undefined
  const onlyOnRootMismatch = pod.spec?.securityContext?.fsGroupChangePolicy === 'OnRootMismatch'
  return { group, readOnly: false, onlyOnRootMismatch }
}

const SINGLE_NODE_MODES = ['ReadWriteOnce', 'ReadWriteOncePod'] as const
