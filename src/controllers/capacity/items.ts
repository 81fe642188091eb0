// An item is a storage class in a topology segment; one capacity object describes one item. The key of an item is derived
// from class and segment, so the queue contains each item once, and the key can be computed from the item's object.
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

/** Class name and segment ID, for example `fast [["zone","a"]]`. */
export type ItemKey = string

export const keyOfItem = (className: string, segmentId: string): ItemKey => `${className} ${segmentId}`

export function parseItemKey(key: ItemKey): { readonly className: string; readonly segmentId: string } {
  const separator = key.indexOf(' ') // class names contain no space
  return { className: key.slice(0, separator), segmentId: key.slice(separator + 1) }
}

/**
 * Returns the key of the object's item. An object without nodeTopology, or with matchExpressions in it, belongs to no
 * segment, so its key is unique and never desired.
 */
export function itemKeyOf(object: Readonly<CSIStorageCapacity>): ItemKey {
  const { nodeTopology, storageClassName } = object
  const isSegment = nodeTopology !== undefined && (nodeTopology.matchExpressions ?? []).length === 0
  return keyOfItem(storageClassName, isSegment ? segmentOf(nodeTopology.matchLabels ?? {}).id : keyOfObject(object))
}
