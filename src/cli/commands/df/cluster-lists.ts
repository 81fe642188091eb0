// The lists of objects that `stowage df` reads.
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { Lists } from '../../space/read-lists.ts'

export const SPACE_KINDS = {
  claims: persistentVolumeClaimKind,
  pods: podKind,
  volumes: persistentVolumeKind,
  classes: storageClassKind,
  attributesClasses: volumeAttributesClassKind,
  capacities: csiStorageCapacityKind,
  nodes: nodeKind,
  quotas: resourceQuotaKind,
} as const

export type SpaceLists = Lists<typeof SPACE_KINDS>

/** The lists that --namespace limits. Capacity objects are in the namespaces of the drivers, so they are always read in all. */
export const NAMESPACE_LISTS: ReadonlySet<keyof SpaceLists> = new Set(['claims', 'pods', 'quotas'])
