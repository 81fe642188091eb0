// Reconciles one item: calls GetCapacity and creates or updates the object of a desired item, and deletes the objects of
// other items.
import type { Logger } from '../../base/log.ts'
import { operationDetailsOf } from '../../base/operation-details.ts'
import { type CsiDriver, CsiError, isUncertain } from '../../csi/index.ts'
import { backOff, done, type Outcome } from '../../runtime/index.ts'
import type { ClassErrors } from './class-errors.ts'
import type { DesiredItems } from './desired-items.ts'
import { getCapacity, type Report } from './get-capacity.ts'
import type { Item, ItemKey } from './items.ts'
import type { LastReports } from './last-reports.ts'
import { type ObjectTemplate, planObject } from './plan-object.ts'
import type { PublishedObjects } from './published-objects.ts'
import type { ServerPause } from './server-pause.ts'
import { applyObject, deleteObject, type WriteContext } from './write-object.ts'

export interface ItemContext extends WriteContext {
  readonly driver: CsiDriver
  readonly timeoutMs: number
  readonly log: Logger
  readonly desiredItems: Pick<DesiredItems, 'get'>
  readonly publishedObjects: PublishedObjects
  readonly reports: LastReports
  readonly classErrors: Pick<ClassErrors, 'recordFailure' | 'recordSuccess' | 'forget'>
  readonly pause: ServerPause
  readonly template: ObjectTemplate
  /** Throws if the owner of new objects no longer exists, because the garbage collector would delete them immediately. */
  readonly confirmOwner?: (signal: AbortSignal) => Promise<void>
}

export async function reconcileItem(key: ItemKey, context: ItemContext, signal: AbortSignal): Promise<Outcome> {
  const { desiredItems, publishedObjects, reports, pause, template } = context
  await pause.whenOver(signal)
  const item = desiredItems.get(key)
  if (!item) {
    reports.delete(key)
    context.classErrors.forget(key)
    return deleteObjects(key, 0, context, signal)
  }
  const deletion = await deleteObjects(key, 1, context, signal) // duplicates
  if (deletion.is !== 'done') return deletion

  const report = await callGetCapacity(key, item, context, signal)
  if ('is' in report) return report
  if (!desiredItems.get(key)) return done // the change that removed the item has queued it again
  const action = planObject(item, publishedObjects.objectsOf(key)[0], report, template)
  reports.set(key, report, action.do === 'omit')
  if (action.do === 'create' && context.confirmOwner) {
    try {
      await context.confirmOwner(signal)
    } catch (error) {
      return backOff(`no capacity object is created: ${(error as Error).message}`)
    }
  }
  return applyObject(action, context, signal)
}

/** Returns the report, or an outcome after an error. The published object does not change after an error. */
async function callGetCapacity(
  key: ItemKey,
  item: Item,
  context: ItemContext,
  signal: AbortSignal,
): Promise<Report | Outcome> {
  const { driver, timeoutMs, log, classErrors } = context
  try {
    const report = await getCapacity(driver, item, { timeoutMs, signal })
    classErrors.recordSuccess(key)
    return report
  } catch (error) {
    const message = error instanceof CsiError ? error.rpcText : (error as Error).message
    const { storageClass, segment } = item
    const fields = { storageClass: storageClass.metadata.name, segment: segment.labels, message }
    if (!signal.aborted) log.warn(fields, 'GetCapacity failed; retrying')
    // An uncertain error, such as that of a driver that is starting or overloaded, is not an error of the class.
    if (error instanceof CsiError && !isUncertain(error)) classErrors.recordFailure(key, message)
    return backOff(`GetCapacity failed: ${message}`, operationDetailsOf(error))
  }
}

/** Deletes all objects of the item except the first `keptCount`. */
async function deleteObjects(
  key: ItemKey,
  keptCount: number,
  context: ItemContext,
  signal: AbortSignal,
): Promise<Outcome> {
  for (const object of context.publishedObjects.objectsOf(key).slice(keptCount)) {
    const outcome = await deleteObject(object, context, signal)
    if (outcome.is !== 'done') return outcome
  }
  return done
}
