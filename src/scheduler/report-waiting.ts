// Tells a pod's owner why it has no node yet: the PodScheduled condition and an event. What is said last counts; a pod
// that is judged again before it was told is told once. A message that cannot be delivered is dropped: it will be said
// again when the pod is next judged, and the standing of the queue has it anyway.
import { podKind } from '../api/kinds/pod.ts'
import { ApiError } from '../api/status-error.ts'
import type { Pod } from '../api/types/pod.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Cache, Client, EventRecorder, ObjectKey } from '../client/index.ts'

export interface WaitReport {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
}

export interface WaitReporter {
  report(pod: Readonly<Pod>, key: ObjectKey, report: WaitReport): void
  /** Settles when everything said so far has been delivered or dropped. */
  idle(): Promise<void>
}

export interface WaitReporterDeps {
  readonly client: Client
  readonly pods: Cache<Pod>
  readonly clock: Clock
  readonly log: Logger
  readonly events: EventRecorder
}

const DELIVERIES_AT_ONCE = 8

export function createWaitReporter({ client, pods, clock, log, events }: WaitReporterDeps): WaitReporter {
  const pending = new Map<ObjectKey, { pod: Readonly<Pod>; report: WaitReport }>() // at most one per pod
  const running = new Set<Promise<void>>()

  async function deliverAll(): Promise<void> {
    for (;;) {
      const [entry] = pending
      if (!entry) return
      const [key, { pod, report }] = entry
      pending.delete(key)
      await deliver(pod, key, report)
    }
  }

  async function deliver(pod: Readonly<Pod>, key: ObjectKey, { reason, message }: WaitReport): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    const known = pods.get(key)
    if (!known || known.metadata.uid !== uid || known.spec?.nodeName) return
    const before = known.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (before?.status === 'False' && before.reason === reason && before.message === message) return
    const lastTransitionTime =
      before?.status === 'False' && before.lastTransitionTime ? before.lastTransitionTime : timestamp(clock.nowMs())
    const condition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
    const body = { metadata: { uid }, status: { conditions: [condition] } }
    try {
      const ref = { name, ...(namespace ? { namespace } : {}) }
      pods.learn(await client.patch(podKind, ref, { type: 'strategic', body }, { subresource: 'status' }))
    } catch (error) {
      const isGone = error instanceof ApiError && (error.code === 404 || error.code === 409)
      if (!isGone) log.warn({ err: error, pod: key }, 'a pod could not be told why it waits')
    }
  }

  return {
    report(pod, key, report) {
      events.record(podKind, pod, { type: 'Warning', reason: 'FailedScheduling', message: report.message })
      pending.set(key, { pod, report })
      if (running.size >= DELIVERIES_AT_ONCE) return
      const work = deliverAll().finally(() => void running.delete(work))
      running.add(work)
    },
    async idle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
