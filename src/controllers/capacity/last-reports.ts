// Stores the last report of the driver per item. follow-objects.ts compares objects with it to detect changes by other
// writers; the metrics need the number of items without capacity.

import type { Report } from './get-capacity.ts'
import type { ItemKey } from './items.ts'

export interface LastReports {
  get(key: ItemKey): Report | undefined
  set(key: ItemKey, report: Report, isOmitted: boolean): void
  /** Must be called for an item that is no longer desired, so that memory is bounded by the desired items. */
  delete(key: ItemKey): void
  /** Number of items that have no object because the driver reports no capacity. */
  readonly omittedCount: number
}

export function createLastReports(): LastReports {
  const reports = new Map<ItemKey, Report>()
  const omittedItems = new Set<ItemKey>()
  return {
    get: (key) => reports.get(key),
    set(key, report, isOmitted) {
      reports.set(key, report)
      if (isOmitted) omittedItems.add(key)
      else omittedItems.delete(key)
    },
    delete(key) {
      reports.delete(key)
      omittedItems.delete(key)
    },
    get omittedCount() {
      return omittedItems.size
    },
  }
}
