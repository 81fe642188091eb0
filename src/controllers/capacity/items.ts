// The subject of one capacity object: a class in a segment. The key consists of their values, so that the queue holds each
// item once, and an object yields the key of its item.
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import { type Segment, segmentOf } from './segments.ts'

export const capacityKind = csiStorageCapacityKind

export interface Item {
  readonly key: ItemKey
  readonly segment: Segment
  readonly storageClass: Readonly<StorageClass>
}

/** `fast [["zone","a"]]` */
export type ItemKey = string

export const keyOfItem = (className: string, segmentId: string): ItemKey => `${className} ${segmentId}`

export function partsOfKey(key: ItemKey): { readonly className: string; readonly segmentId: string } {
  const at = key.indexOf(' ') // class names contain no space
  return { className: key.slice(0, at), segmentId: key.slice(at + 1) }
}

/** An object whose nodeTopology is not matchLabels only belongs to no segment: its key is unique and never desired. */
export function itemKeyOf(object: Readonly<CSIStorageCapacity>): ItemKey {
  const { nodeTopology, storageClassName } = object
  const isSegment = nodeTopology !== undefined && (nodeTopology.matchExpressions ?? []).length === 0
  return keyOfItem(storageClassName, isSegment ? segmentOf(nodeTopology.matchLabels ?? {}).id : keyOfObject(object))
}
