// Queues an item when an object of the item is deleted, when another writer changes the sizes, labels or owner of the object or
// creates a second one, and when an object of no desired item appears. Objects that the producer itself creates or updates
// equal the last report and queue no item.
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import type { DesiredItems } from './desired-items.ts'
import { type ItemKey, itemKeyOf } from './items.ts'
import type { LastReports } from './last-reports.ts'
import { isUpToDate, type ObjectTemplate } from './plan-object.ts'
import type { PublishedObjects } from './published-objects.ts'

export interface FollowObjectsOptions {
  readonly objects: Cache<CSIStorageCapacity>
  readonly desiredItems: Pick<DesiredItems, 'get'>
  readonly publishedObjects: Pick<PublishedObjects, 'objectsOf'>
  readonly reports: Pick<LastReports, 'get'>
  readonly template: ObjectTemplate
  readonly onChange: (key: ItemKey) => void
}

export function followObjects(options: FollowObjectsOptions): () => void {
  const { objects, desiredItems, publishedObjects, reports, template, onChange } = options
  const queueIfChanged = (object: Readonly<CSIStorageCapacity>) => {
    const key = itemKeyOf(object)
    const report = reports.get(key)
    const isUnchanged = desiredItems.get(key) && report && isUpToDate(object, report, template)
    if (!isUnchanged || publishedObjects.objectsOf(key).length > 1) onChange(key)
  }
  return objects.subscribe({
    added: queueIfChanged,
    updated: queueIfChanged,
    deleted: (object) => onChange(itemKeyOf(object)),
  })
}
