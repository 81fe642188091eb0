// Whether the agent has to apply the pod's fsGroup to a volume, by the driver's fsGroupPolicy. Pure.

import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { NodeCapability } from '../../csi/index.ts'
import type { GroupOptions } from '../disk/disk.ts'
import type { CsiVolume } from './csi-volume.ts'

export const groupOfPod = ({ spec }: Readonly<Pod>): number | undefined => spec?.securityContext?.fsGroup

/** Undefined: the agent need not change the ownership. */
export function ownershipChange(
  pod: Readonly<Pod>,
  volume: CsiVolume,
  { csiDriver, can }: { readonly csiDriver?: Readonly<CSIDriver>; readonly can: ReadonlySet<NodeCapability> },
): GroupOptions | undefined {
  const group = groupOfPod(pod)
  if (group === undefined || volume.mode === 'Block' || volume.readOnly) return undefined
  if (can.has('VOLUME_MOUNT_GROUP')) return undefined // the driver applies the group itself
  const policy = csiDriver?.spec.fsGroupPolicy ?? 'ReadWriteOnceWithFSType'
  const isOneNodes = ONE_NODE_MODES.some((mode) => volume.pv?.spec?.accessModes?.includes(mode))
  const applies = policy === 'File' || (policy === 'ReadWriteOnceWithFSType' && volume.fsType !== '' && isOneNodes)
  if (!applies) return undefined
  const onlyOnRootMismatch = pod.spec?.securityContext?.fsGroupChangePolicy === 'OnRootMismatch'
  return { group, readOnly: false, onlyOnRootMismatch }
}

const ONE_NODE_MODES = ['ReadWriteOnce', 'ReadWriteOncePod'] as const
