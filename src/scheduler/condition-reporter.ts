// Reports why a pod has no node yet: records an event and writes the PodScheduled condition. A pod has at most one write in
// flight; a condition that a later report replaces before it is written is dropped. Failed writes are retried, because the
// scheduler may not evaluate the pod again for a long time.
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { timestamp } from '../base/timestamps.ts'
import type { Client, ObjectKey } from '../client/index.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Cache, EventRecorder } from '../runtime/index.ts'

interface ConditionReport {
  /** Type of the event. A Warning has the reason FailedScheduling, a Normal event has the reason of the condition. */
  readonly type: 'Warning' | 'Normal'
  readonly reason: string
  readonly message: string
}

export interface ConditionReporter {
  report(pod: Readonly<Pod>, key: ObjectKey, report: ConditionReport): void
  /** Reports after a few seconds if the pod has no later report and `isCurrent` returns true. */
  reportIfLasting(pod: Readonly<Pod>, key: ObjectKey, report: ConditionReport, isCurrent: () => boolean): void
  /** Cancels retries and delayed reports. Settles when the pending conditions have been written or have failed. */
  stop(): Promise<void>
}

export interface ConditionReporterDeps {
  readonly client: Client
  readonly pods: Cache<Pod>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
}

const CONCURRENT_WRITES_MAX = 8
/** A cause that another controller removes within this time is not reported. */
const REPORT_DELAY_MS = 5_000
const RETRY = { baseMs: 1_000, maxMs: 60_000 }

interface PendingReport {
  readonly pod: Readonly<Pod>
  readonly report: ConditionReport
  readonly failures: number
}

export function createConditionReporter({
  client,
  pods,
  clock,
  random,
  log,
  events,
}: ConditionReporterDeps): ConditionReporter {
  const pendingReports = new Map<ObjectKey, PendingReport>()
  const retries = new Map<ObjectKey, () => void>()
  const delays = new Map<ObjectKey, () => void>()
  const keysInFlight = new Set<ObjectKey>()
  const writers = new Set<Promise<void>>()
  let isStopped = false

  async function writePending(): Promise<void> {
    for (;;) {
      const nextReport = findPending()
      if (!nextReport) return
      const [key, pendingReport] = nextReport
      pendingReports.delete(key)
      keysInFlight.add(key)
      try {
        await write(key, pendingReport)
      } finally {
        keysInFlight.delete(key)
      }
    }
  }

  /** Returns a report whose pod has no write in flight. The writer of a skipped pod calls this again after its write. */
  function findPending(): [ObjectKey, PendingReport] | undefined {
    for (const [key, pendingReport] of pendingReports) if (!keysInFlight.has(key)) return [key, pendingReport]
    return undefined
  }

  function enqueue(key: ObjectKey, pendingReport: PendingReport): void {
    retries.get(key)?.()
    retries.delete(key)
    pendingReports.set(key, pendingReport)
    if (writers.size >= CONCURRENT_WRITES_MAX) return
    const writer = writePending().finally(() => void writers.delete(writer))
    writers.add(writer)
  }

  function retry(key: ObjectKey, pendingReport: PendingReport): void {
    if (isStopped || pendingReports.has(key)) return
    const failures = pendingReport.failures + 1
    const requeue = () => enqueue(key, { ...pendingReport, failures })
    retries.set(key, clock.after(backoffMs(RETRY, pendingReport.failures, random), requeue))
  }

  async function write(key: ObjectKey, pendingReport: PendingReport): Promise<void> {
    const { pod, report } = pendingReport
    const { reason, message } = report
    const { namespace, name = '', uid } = pod.metadata
    const currentPod = pods.get(key)
    if (!currentPod || currentPod.metadata.uid !== uid || currentPod.spec?.nodeName) return
    const { resourceVersion } = currentPod.metadata // precondition: the report is obsolete if the pod has been bound since
    const previousCondition = currentPod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (
      previousCondition?.status === 'False' &&
      previousCondition.reason === reason &&
      previousCondition.message === message
    )
      return
    const lastTransitionTime =
      previousCondition?.status === 'False' && previousCondition.lastTransitionTime
        ? previousCondition.lastTransitionTime
        : timestamp(clock.nowMs())
    const { generation } = currentPod.metadata
    const observedGeneration = generation === undefined ? {} : { observedGeneration: generation }
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason,
      message,
      lastTransitionTime,
      ...observedGeneration,
    }
    const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } }
    try {
      const ref = { name, namespace }
      pods.applyWriteResult(await client.patch(podKind, ref, { type: 'strategic', body }, { subresource: 'status' }))
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error) && pendingReport.failures === 0)
        log.warn({ err: error, pod: key }, 'writing the PodScheduled condition failed; retrying with backoff')
      retry(key, pendingReport)
    }
  }

  function report(pod: Readonly<Pod>, key: ObjectKey, conditionReport: ConditionReport): void {
    cancelDelay(key)
    const { type, message } = conditionReport
    const reason = type === 'Normal' ? conditionReport.reason : 'FailedScheduling'
    events.record(podKind, pod, { type, reason, message })
    enqueue(key, { pod, report: conditionReport, failures: 0 })
  }

  function cancelDelay(key: ObjectKey): void {
    delays.get(key)?.()
    delays.delete(key)
  }

  return {
    report,
    reportIfLasting(pod, key, conditionReport, isCurrent) {
      cancelDelay(key)
      const runDelayed = () => {
        delays.delete(key)
        const isSame = pods.get(key)?.metadata.uid === pod.metadata.uid
        if (isSame && isCurrent()) report(pod, key, conditionReport)
      }
      delays.set(key, clock.after(REPORT_DELAY_MS, runDelayed))
    },
    async stop() {
      isStopped = true
      for (const cancel of [...retries.values(), ...delays.values()]) cancel()
      while (writers.size > 0) await Promise.all(writers)
    },
  }
}
