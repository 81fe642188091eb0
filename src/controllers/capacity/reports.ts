// What the driver last said about each item: by it, the producer's own writes are told from those of others, and items
// that have no object on purpose from those that still wait for one.
import type { ItemKey } from './items.ts'
import type { Report } from './report.ts'

export interface Reports {
  get(key: ItemKey): Report | undefined
  set(key: ItemKey, report: Report, isLeftOut: boolean): void
  /** The item is not wanted any more: memory is bounded by those that are. */
  forget(key: ItemKey): void
  /** Items of which the driver has nothing, and no object says so. */
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
