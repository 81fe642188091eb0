// The lists of objects that `stowage unused` reads.
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { Lists } from '../../space/read-lists.ts'

export const UNUSED_KINDS = {
  claims: persistentVolumeClaimKind,
  pods: podKind,
  volumes: persistentVolumeKind,
  classes: storageClassKind,
  attributesClasses: volumeAttributesClassKind,
} as const

export type UnusedLists = Lists<typeof UNUSED_KINDS>

/** The lists that are read only in the chosen namespace. */
export const NAMESPACE_LISTS: ReadonlySet<keyof UnusedLists> = new Set(['claims', 'pods'])
