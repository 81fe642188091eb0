// Queues an item when another writer changed its object: deleted it, changed its capacity, labels or owner, or created a
// second one. The producer's own writes equal the last report and queue nothing.
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import type { DesiredItems } from './desired-items.ts'
import { type ItemKey, itemKeyOf } from './items.ts'
import { isAsReported, type Marks } from './plan-object.ts'
import type { Published } from './published.ts'
import type { Reports } from './reports.ts'

export interface FollowObjectsOptions {
  readonly objects: Cache<CSIStorageCapacity>
  readonly desired: Pick<DesiredItems, 'get'>
  readonly published: Pick<Published, 'of'>
  readonly reports: Pick<Reports, 'get'>
  readonly marks: Marks
  readonly changed: (key: ItemKey) => void
}

export function followObjects(options: FollowObjectsOptions): () => void {
  const { objects, desired, published, reports, marks, changed } = options
  const check = (object: Readonly<CSIStorageCapacity>) => {
    const key = itemKeyOf(object)
    const report = reports.get(key)
    const isOurs = desired.get(key) && report && isAsReported(object, report, marks)
    if (!isOurs || published.of(key).length > 1) changed(key)
  }
  return objects.subscribe({ added: check, updated: check, deleted: (object) => changed(itemKeyOf(object)) })
}
