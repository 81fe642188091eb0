// Reports why a pod has no node yet: as its PodScheduled condition and as an event. The last report wins: one that is
// replaced before it was written is dropped, and a pod has at most one write in flight. A write that fails is retried,
// because the pod may not be evaluated again for a long time.
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client, ObjectKey } from '../client/index.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Cache, EventRecorder } from '../runtime/index.ts'

export interface ConditionReport {
  /** Warning: scheduling failed, event reason FailedScheduling. Normal: progress, the event has the condition's reason. */
  readonly type: 'Warning' | 'Normal'
  readonly reason: string
  readonly message: string
}

export interface ConditionReporter {
  report(pod: Readonly<Pod>, key: ObjectKey, report: ConditionReport): void
  /** Stops retries. Settles when the writes in flight have. */
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
const RETRY = { baseMs: 1_000, maxMs: 60_000 }

interface Pending {
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
  const pending = new Map<ObjectKey, Pending>()
  const retries = new Map<ObjectKey, () => void>()
  const inFlight = new Set<ObjectKey>()
  const writers = new Set<Promise<void>>()
  let isStopped = false

  async function writeAll(): Promise<void> {
    for (;;) {
      const next = nextPending()
      if (!next) return
      const [key, entry] = next
      pending.delete(key)
      inFlight.add(key)
      try {
        await write(key, entry)
      } finally {
        inFlight.delete(key)
      }
    }
  }

  /** Skips pods with a write in flight: the writer of that one looks here again afterwards. */
  function nextPending(): [ObjectKey, Pending] | undefined {
    for (const entry of pending) if (!inFlight.has(entry[0])) return entry
    return undefined
  }

  function enqueue(key: ObjectKey, entry: Pending): void {
    retries.get(key)?.()
    retries.delete(key)
    pending.set(key, entry)
    if (writers.size >= CONCURRENT_WRITES_MAX) return
    const writer = writeAll().finally(() => void writers.delete(writer))
    writers.add(writer)
  }

  function retry(key: ObjectKey, entry: Pending): void {
    if (isStopped || pending.has(key)) return
    const failures = entry.failures + 1
    const again = () => enqueue(key, { ...entry, failures })
    retries.set(key, clock.after(backoffMs(RETRY, entry.failures, random), again))
  }

  async function write(key: ObjectKey, entry: Pending): Promise<void> {
    const { pod, report } = entry
    const { reason, message } = report
    const { namespace, name = '', uid } = pod.metadata
    const known = pods.get(key)
    if (!known || known.metadata.uid !== uid || known.spec?.nodeName) return
    const { resourceVersion } = known.metadata // a precondition: if the pod was bound since, the report is obsolete
    const before = known.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (before?.status === 'False' && before.reason === reason && before.message === message) return
    const lastTransitionTime =
      before?.status === 'False' && before.lastTransitionTime ? before.lastTransitionTime : timestamp(clock.nowMs())
    const condition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
    const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } }
    try {
      const ref = { name, namespace }
      pods.learn(await client.patch(podKind, ref, { type: 'strategic', body }, { subresource: 'status' }))
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error) && entry.failures === 0)
        log.warn({ err: error, pod: key }, 'writing the PodScheduled condition failed; retrying with backoff')
      retry(key, entry)
    }
  }

  return {
    report(pod, key, report) {
      const { type, message } = report
      const reason = type === 'Normal' ? report.reason : 'FailedScheduling'
      events.record(podKind, pod, { type, reason, message })
      enqueue(key, { pod, report, failures: 0 })
    },
    async stop() {
      isStopped = true
      for (const cancel of retries.values()) cancel()
      while (writers.size > 0) await Promise.all(writers)
    },
  }
}

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
