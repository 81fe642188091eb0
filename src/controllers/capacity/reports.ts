// The last report of the driver per item. It distinguishes the producer's own writes from those of others, and items
// without capacity from items whose object is not created yet.
import type { ItemKey } from './items.ts'
import type { Report } from './report.ts'

export interface Reports {
  get(key: ItemKey): Report | undefined
  set(key: ItemKey, report: Report, isLeftOut: boolean): void
  /** For an item that is no longer desired: memory is bounded by desired items. */
  forget(key: ItemKey): void
  /** Items without capacity, and therefore without an object. */
  readonly leftOut: number
}

export function createReports(): Reports {
  const reports = new Map<ItemKey, Report>()
  const leftOut = new Set<ItemKey>()
  return {
    get: (key) => reports.get(key),
    set(key, report, isLeftOut) {
      reports.set(key, report)
      if (isLeftOut) leftOut.add(key)
      else leftOut.delete(key)
    },
    forget(key) {
      reports.delete(key)
      leftOut.delete(key)
    },
    get leftOut() {
      return leftOut.size
    },
  }
}
