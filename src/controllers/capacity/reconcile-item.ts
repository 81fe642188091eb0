// Reconciles one item: one object if the item is desired and the driver reports capacity, none otherwise. Calls GetCapacity
// every time.
import type { Logger } from '../../base/log.ts'
import { type CsiDriver, CsiError } from '../../csi/index.ts'
import { backOff, done, type Outcome } from '../../runtime/index.ts'
import type { DesiredItems } from './desired-items.ts'
import type { Item, ItemKey } from './items.ts'
import { type Marks, planObject } from './plan-object.ts'
import type { Published } from './published.ts'
import { getCapacity, type Report } from './report.ts'
import type { Reports } from './reports.ts'
import type { ServerPause } from './server-pause.ts'
import { applyObject, deleteObject, type Writing } from './writing.ts'

export interface ItemContext extends Writing {
  readonly driver: CsiDriver
  readonly timeoutMs: number
  readonly log: Logger
  readonly desired: Pick<DesiredItems, 'get'>
  readonly published: Published
  readonly reports: Reports
  readonly pause: ServerPause
  readonly marks: Marks
}

export async function reconcileItem(key: ItemKey, context: ItemContext, signal: AbortSignal): Promise<Outcome> {
  const { desired, published, reports, pause, marks } = context
  await pause.over(signal)
  const item = desired.get(key)
  if (!item) {
    reports.forget(key)
    return deleteAll(key, 0, context, signal)
  }
  const tidied = await deleteAll(key, 1, context, signal) // duplicates, regardless of their capacity
  if (tidied.is !== 'done') return tidied

  const report = await requestReport(item, context, signal)
  if ('is' in report) return report
  if (!desired.get(key)) return done // no longer desired since the call began; that change has queued it again
  const action = planObject(item, published.of(key)[0], report, marks)
  reports.set(key, report, action.do === 'leaveOut')
  return applyObject(action, context, signal)
}

/** An error says nothing about the capacity: the published object stays. */
async function requestReport(item: Item, context: ItemContext, signal: AbortSignal): Promise<Report | Outcome> {
  const { driver, timeoutMs, log } = context
  try {
    return await getCapacity(driver, item, { timeoutMs, signal })
  } catch (error) {
    const because = error instanceof CsiError ? error.rpcText : (error as Error).message
    const { storageClass, segment } = item
    const fields = { storageClass: storageClass.metadata.name, segment: segment.labels, because }
    if (!signal.aborted) log.warn(fields, 'GetCapacity failed; retrying')
    return backOff(`GetCapacity failed: ${because}`)
  }
}

/** Deletes all but the first `kept` objects. */
async function deleteAll(key: ItemKey, kept: number, context: ItemContext, signal: AbortSignal): Promise<Outcome> {
  for (const object of context.published.of(key).slice(kept)) {
    const outcome = await deleteObject(object, context, signal)
    if (outcome.is !== 'done') return outcome
  }
  return done
}
