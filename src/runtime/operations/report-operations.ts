// Reports this process's operations to its API server: changes in bounded batches, and a heartbeat while there are
// operations. The reports also contain its attempts and driver calls. A server that does not know the process, for
// example after a restart, receives a complete list. A server that does not serve reports, such as a stock API server,
// receives none.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { operationReportKind, REPORTED_OPERATIONS_MAX } from '../../api/kinds/operation/operation-report.ts'
import type { Operation, OperationReference } from '../../api/kinds/operation/operation-schema.ts'
import { isForbidden, isNotServed } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/client.ts'
import { type OperationChanges, type OperationRegistry, referenceTo } from './registry.ts'

export interface ReportOptions {
  readonly client: Pick<Client, 'create' | 'serves'>
  readonly operations: OperationRegistry
  readonly clock: Clock
  readonly log: Logger
}

export interface OperationReporter {
  /** Stops the reports. The last one removes this process's operations, within at most two seconds. */
  stop(): Promise<void>
}

/** The API server removes a process's operations after three missed heartbeats. */
export const HEARTBEAT_INTERVAL_MS = 30_000
const RETRY_DELAY_MS = 10_000
/** The delay before the next attempt at a server that does not serve reports, or not to this user. */
const NOT_SERVED_RETRY_MS = 600_000
const STOP_MS_MAX = 2_000
/** Beyond this number of activities that wait to be reported, the oldest are dropped. */
const PENDING_ACTIVITIES_MAX = 2_000
/** Activities wait this long for a report. */
const ACTIVITY_DELAY_MS = 1_000

interface Change {
  readonly reference: OperationReference
  /** Undefined if the operation was removed. */
  readonly operation?: Operation
}

export function reportOperations({ client, operations, clock, log }: ReportOptions): OperationReporter {
  /** The newest state of each operation that changed since the last report, by namespace and name. */
  const pendingChanges = new Map<string, Change>()
  /** The operations that the server has. */
  const reportedKeys = new Set<string>()
  let activities: Activity[] = []
  let cancelActivityTimer: (() => void) | undefined
  let needsCompleteList = true
  let isBackingOff = false
  let isStopped = false
  let currentSend: Promise<void> | undefined
  let cancelTimer = () => {}

  const unsubscribe = operations.subscribe(({ changed, removed }: OperationChanges) => {
    for (const operation of changed) setPending({ reference: referenceTo(operation), operation })
    for (const reference of removed) setPending({ reference })
    if (!isBackingOff) send()
  })

  operations.subscribeActivities((activity) => {
    if (isStopped) return
    activities.push(activity)
    if (activities.length > PENDING_ACTIVITIES_MAX) setActivities(activities)
    cancelActivityTimer ??= clock.after(ACTIVITY_DELAY_MS, () => {
      cancelActivityTimer = undefined
      if (!isBackingOff && activities.length > 0) send()
    })
  })

  /** Replaces the activities to report by the newest of these. */
  function setActivities(all: readonly Activity[]): void {
    activities = all.slice(-PENDING_ACTIVITIES_MAX)
  }

  function setPending(change: Change): void {
    pendingChanges.set(`${change.reference.namespace}/${change.reference.name}`, change)
  }

  function send(): void {
    currentSend ??= sendPending().then(
      () => finish(reportedKeys.size > 0 ? HEARTBEAT_INTERVAL_MS : undefined),
      (error) => finish(handleError(error)),
    )
  }

  function finish(nextMs: number | undefined): void {
    currentSend = undefined
    if (isStopped) return
    if (pendingChanges.size > 0 && !isBackingOff) send()
    else if (nextMs !== undefined) cancelTimer = clock.after(nextMs, send)
  }

  /** Sends at least one report. If nothing has changed, it is a heartbeat. */
  async function sendPending(): Promise<void> {
    cancelTimer()
    isBackingOff = false
    if (!(await client.serves(operationReportKind))) throw new NotServedError()
    do {
      const isComplete = needsCompleteList
      if (isComplete) setAllPending()
      const batch = [...pendingChanges].slice(0, REPORTED_OPERATIONS_MAX)
      for (const [key] of batch) pendingChanges.delete(key)
      needsCompleteList = true // until the server has confirmed the report
      const sentActivities = activities.slice(0, REPORTED_OPERATIONS_MAX)
      activities = activities.slice(sentActivities.length)
      let isKnown = false
      try {
        isKnown = await sendReport(
          batch.map(([, change]) => change),
          { isComplete, activities: sentActivities },
        )
      } finally {
        if (!isKnown) setActivities([...sentActivities, ...activities])
      }
      if (isComplete && !isKnown) throw new Error('the API server did not accept a complete list of operations')
      needsCompleteList = !isKnown
      if (isComplete) reportedKeys.clear()
      for (const [key, { operation }] of batch) {
        if (operation) reportedKeys.add(key)
        else reportedKeys.delete(key)
      }
    } while (needsCompleteList || pendingChanges.size > 0 || activities.length > 0)
  }

  function setAllPending(): void {
    const allOperations = operations.list()
    pendingChanges.clear()
    for (const operation of allOperations) setPending({ reference: referenceTo(operation), operation })
  }

  /** Returns whether the server knows this process. */
  async function sendReport(
    changes: readonly Change[],
    { isComplete, activities: sentActivities = [] }: { isComplete: boolean; activities?: readonly Activity[] },
  ): Promise<boolean> {
    const spec = {
      process: operations.process,
      isComplete,
      operations: changes.flatMap(({ operation }) => operation ?? []),
      removed: changes.flatMap(({ operation, reference }) => (operation ? [] : [reference])),
      ...(sentActivities.length > 0 ? { activities: [...sentActivities] } : {}),
    }
    const { status } = await client.create(operationReportKind, { metadata: {}, spec })
    return status?.isKnown ?? false
  }

  /** Logs the error of a report, and returns the time until the next report. */
  function handleError(error: unknown): number {
    const isDenied = isForbidden(error)
    const { message } = error as Error
    if (isDenied) log.info({ reason: message }, 'cannot report operations until a role grants it')
    else log.debug({ reason: message }, 'operations are reported later')
    isBackingOff = true
    return isDenied || isNotServed(error) || error instanceof NotServedError ? NOT_SERVED_RETRY_MS : RETRY_DELAY_MS
  }

  return {
    async stop() {
      isStopped = true
      unsubscribe()
      cancelTimer()
      cancelActivityTimer?.()
      await currentSend
      if (reportedKeys.size === 0 && activities.length === 0) return
      const timeout = new AbortController()
      const removeAll = sendReport([], { isComplete: true, activities: activities.slice(-REPORTED_OPERATIONS_MAX) })
        .catch(() => {}) // the server removes the operations of a silent process
        .finally(() => timeout.abort())
      await Promise.race([removeAll, clock.sleep(STOP_MS_MAX, timeout.signal).catch(() => {})])
    },
  }
}

/** Thrown if the API server does not serve reports of operations. */
class NotServedError extends Error {
  override readonly name = 'NotServedError'
}
