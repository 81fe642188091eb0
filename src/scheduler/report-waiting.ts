// Tells a pod's owner why it has no node yet: the PodScheduled condition and an event. What is said last counts: a pod
// that is judged again before it was told is told once, and never two things at a time. A message that the server does
// not take now is tried again: the pod may not be judged anew for a long time.
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client, ObjectKey } from '../client/index.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Cache, EventRecorder } from '../runtime/index.ts'

export interface WaitReport {
  /** The last: it has a node, and its volumes are being made. */
  readonly reason: 'Unschedulable' | 'SchedulerError' | 'WaitingForVolumes'
  readonly message: string
}

export interface WaitReporter {
  report(pod: Readonly<Pod>, key: ObjectKey, report: WaitReport): void
  /** Nothing is tried again from now on; settles when what is under way has been delivered or dropped. */
  stop(): Promise<void>
}

export interface WaitReporterDeps {
  readonly client: Client
  readonly pods: Cache<Pod>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
}

const DELIVERIES_AT_ONCE = 8
const RETRY = { baseMs: 1_000, maxMs: 60_000 }

interface Letter {
  readonly pod: Readonly<Pod>
  readonly report: WaitReport
  readonly failures: number
}

export function createWaitReporter({ client, pods, clock, random, log, events }: WaitReporterDeps): WaitReporter {
  const pending = new Map<ObjectKey, Letter>() // at most one per pod, as is the next
  const returned = new Map<ObjectKey, () => void>()
  const underWay = new Set<ObjectKey>()
  const running = new Set<Promise<void>>()
  let isStopped = false

  async function deliverAll(): Promise<void> {
    for (;;) {
      const next = nextLetter()
      if (!next) return
      const [key, letter] = next
      pending.delete(key)
      underWay.add(key)
      try {
        await deliver(key, letter)
      } finally {
        underWay.delete(key)
      }
    }
  }

  /** Whoever delivers a pod's last letter looks for its next, so that one passed over here is not forgotten. */
  function nextLetter(): [ObjectKey, Letter] | undefined {
    for (const entry of pending) if (!underWay.has(entry[0])) return entry
    return undefined
  }

  function send(key: ObjectKey, letter: Letter): void {
    returned.get(key)?.()
    returned.delete(key)
    pending.set(key, letter)
    if (running.size >= DELIVERIES_AT_ONCE) return
    const work = deliverAll().finally(() => void running.delete(work))
    running.add(work)
  }

  function sendAgain(key: ObjectKey, letter: Letter): void {
    if (isStopped || pending.has(key)) return
    const failures = letter.failures + 1
    const again = () => send(key, { ...letter, failures })
    returned.set(key, clock.after(backoffMs(RETRY, letter.failures, random), again))
  }

  async function deliver(key: ObjectKey, letter: Letter): Promise<void> {
    const { pod, report } = letter
    const { reason, message } = report
    const { namespace, name = '', uid } = pod.metadata
    const known = pods.get(key)
    if (!known || known.metadata.uid !== uid || known.spec?.nodeName) return
    const { resourceVersion } = known.metadata // it may have been bound since: then nothing is to be said any more
    const before = known.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (before?.status === 'False' && before.reason === reason && before.message === message) return
    const lastTransitionTime =
      before?.status === 'False' && before.lastTransitionTime ? before.lastTransitionTime : timestamp(clock.nowMs())
    const condition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
    const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } }
    try {
      const ref = { name, ...(namespace ? { namespace } : {}) }
      pods.learn(await client.patch(podKind, ref, { type: 'strategic', body }, { subresource: 'status' }))
    } catch (error) {
      const code = error instanceof ApiError ? error.code : undefined
      if (code === 404) return
      if (code !== 409 && letter.failures === 0)
        log.warn({ err: error, pod: key }, 'a pod could not be told why it waits; trying again')
      sendAgain(key, letter)
    }
  }

  return {
    report(pod, key, report) {
      const { reason, message } = report
      if (reason === 'WaitingForVolumes') events.record(podKind, pod, { type: 'Normal', reason, message })
      else events.record(podKind, pod, { type: 'Warning', reason: 'FailedScheduling', message })
      send(key, { pod, report, failures: 0 })
    },
    async stop() {
      isStopped = true
      for (const takeBack of returned.values()) takeBack()
      while (running.size > 0) await Promise.all(running)
    },
  }
}

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
