// Queues an item when another writer changed its object: deleted it, changed its capacity, labels or owner, or created a
// second one. The producer's own writes equal the last report and queue nothing.
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { type ItemKey, itemKeyOf } from './items.ts'
import { isAsReported, type Marks } from './plan-object.ts'
import type { Published } from './published.ts'
import type { Reports } from './reports.ts'
import type { WantedItems } from './wanted-items.ts'

export interface FollowObjectsOptions {
  readonly objects: Cache<CSIStorageCapacity>
  readonly wanted: Pick<WantedItems, 'get'>
  readonly published: Pick<Published, 'of'>
  readonly reports: Pick<Reports, 'get'>
  readonly marks: Marks
  readonly changed: (key: ItemKey) => void
}

export function followObjects(options: FollowObjectsOptions): () => void {
  const { objects, wanted, published, reports, marks, changed } = options
  const look = (object: Readonly<CSIStorageCapacity>) => {
    const key = itemKeyOf(object)
    const report = reports.get(key)
    const isOurs = wanted.get(key) && report && isAsReported(object, report, marks)
    if (!isOurs || published.of(key).length > 1) changed(key)
  }
  return objects.subscribe({ added: look, updated: look, deleted: (object) => changed(itemKeyOf(object)) })
}
