// Records Events on objects; a repeated event raises the count of the first. Recording never blocks, throws or floods: the
// queue is bounded, each object has a rate limit, and many variations of one reason are combined. Pending events are sent in
// one commit where the server commits atomically, and one by one if the commit fails.
import type { Kind, KubeObject } from '../api/kind.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import { ApiError, isAlreadyExists, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client, CommitWrite } from '../client/client.ts'
import { backoffMs } from './backoff.ts'

export interface EventRecorderOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** The reporting component: `stowage-provisioner`. */
  readonly component: string
  /** The host or pod of the component. */
  readonly instance?: string
}

export interface EventDetails {
  readonly type: 'Normal' | 'Warning'
  /** One word in CamelCase, for programs. */
  readonly reason: string
  readonly message: string
  readonly action?: string
}

export interface EventRecorder {
  record(kind: Kind, object: Readonly<KubeObject>, details: EventDetails): void
  /** Sends until the signal fires, then sends pending events once. */
  run(signal: AbortSignal): Promise<void>
  stats(): { readonly pending: number; readonly dropped: number; readonly sent: number }
}

const PENDING_MAX = 5_000 // further events are dropped and counted
/** Events per commit. With more pending the server is busy, and events must not slow it down: the rest waits. */
const BATCH_MAX = 64
const BATCH_PAUSE_MS = 250
const REMEMBERED_MAX = 4_096 // beyond this, the least recently recorded starts a new event
const MESSAGE_BYTES_MAX = 1_024
/** Rate limit per object: this many at once, and one more every five minutes. */
const OBJECT_BURST = 25
const OBJECT_REFILL_MS = 300_000
/** More different messages than this for one object and reason within ten minutes are combined. */
const VARIATIONS_MAX = 10
const VARIATIONS_MS = 600_000
const TRIES_MAX = 5
const RETRY = { baseMs: 1_000, maxMs: 30_000 }
/** Events expire on the server after an hour; an older one cannot be counted up. */
const SAME_EVENT_MS = 3_000_000

interface Pending {
  readonly key: string
  readonly about: Event['involvedObject']
  readonly details: EventDetails
  count: number
  firstMs: number
  lastMs: number
  /** The name of its Event, after the first attempt to create it. */
  name?: string
}

/** The write for an event, and what to remember afterwards. */
interface Sending {
  readonly write: Extract<CommitWrite, { do: 'create' | 'patch' }>
  readonly recorded: RecordedEvent
}

interface RecordedEvent {
  readonly namespace: string
  readonly name: string
  count: number
  lastMs: number
}

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, clock, random, log = silentLog, component, instance = component } = options
  const pending = new Map<string, Pending>()
  const recorded = lru<RecordedEvent>(REMEMBERED_MAX)
  const buckets = lru<{ tokens: number; atMs: number }>(REMEMBERED_MAX)
  const variations = lru<{ messages: Set<string>; sinceMs: number }>(REMEMBERED_MAX)
  let dropped = 0
  let sent = 0
  let wake: (() => void) | undefined

  function record(kind: Kind, object: Readonly<KubeObject>, details: EventDetails): void {
    const { namespace, name, uid, resourceVersion } = object.metadata
    const apiVersion = kind.group ? `${kind.group}/${kind.versions[0]}` : kind.versions[0]!
    const about = { kind: kind.kind, apiVersion, name, uid, resourceVersion, ...(namespace ? { namespace } : {}) }
    const identity = JSON.stringify([about.kind, namespace, name, uid])
    const combinedEvent = combined(identity, { ...details, message: shortened(details.message) })
    const key = JSON.stringify([identity, combinedEvent.key])
    const waiting = pending.get(key)
    if (waiting) {
      waiting.count++
      waiting.lastMs = clock.nowMs()
      return
    }
    if (pending.size >= PENDING_MAX || !mayTell(identity)) {
      dropped++
      return
    }
    const nowMs = clock.nowMs()
    pending.set(key, { key, about, details: combinedEvent.details, count: 1, firstMs: nowMs, lastMs: nowMs })
    wake?.()
  }

  /** Identifies repeated events: by message, unless there were too many variations of it lately. */
  function combined(identity: string, details: EventDetails): { key: string; details: EventDetails } {
    const { type, reason, message } = details
    const group = JSON.stringify([identity, type, reason])
    const nowMs = clock.monotonicMs()
    let seen = variations.get(group)
    if (!seen || nowMs - seen.sinceMs > VARIATIONS_MS) {
      seen = { messages: new Set(), sinceMs: nowMs }
      variations.set(group, seen)
    }
    if (seen.messages.size >= VARIATIONS_MAX && !seen.messages.has(message)) {
      return {
        key: JSON.stringify([type, reason]),
        details: { ...details, message: shortened(`(combined from similar events): ${message}`) },
      }
    }
    seen.messages.add(message)
    return { key: JSON.stringify([type, reason, message]), details }
  }

  function mayTell(identity: string): boolean {
    const nowMs = clock.monotonicMs()
    const { tokens, atMs } = buckets.get(identity) ?? { tokens: OBJECT_BURST, atMs: nowMs }
    const filled = Math.min(OBJECT_BURST, tokens + (nowMs - atMs) / OBJECT_REFILL_MS)
    buckets.set(identity, { tokens: filled < 1 ? filled : filled - 1, atMs: nowMs })
    return filled >= 1
  }

  async function send(one: Pending): Promise<void> {
    const counting = countOn(one)
    if (counting) {
      try {
        await sendAlone(counting)
        recorded.set(one.key, counting.recorded)
        return
      } catch (error) {
        if (!isNotFound(error)) throw error // expired: create a new one
      }
    }
    const sending = createWrite(one)
    await sendAlone(sending)
    recorded.set(one.key, sending.recorded)
  }

  /** All or none; false if none was written, or that is unknown. */
  async function sendTogether(batch: readonly Pending[]): Promise<boolean> {
    const sendings = batch.map((one) => countOn(one) ?? createWrite(one))
    try {
      if (!(await client.commitsAtomically())) return false
      await client.commit(sendings.map(({ write }) => write))
    } catch {
      return false // sending events one by one shows which caused the failure
    }
    for (const [index, { key }] of batch.entries()) recorded.set(key, sendings[index]!.recorded)
    sent += batch.length
    return true
  }

  async function sendAlone({ write }: Sending): Promise<void> {
    if (write.do === 'patch') return void (await client.patch(write.kind, write.ref, write.patch))
    try {
      await client.create(write.kind, write.object)
    } catch (error) {
      // The name is random: an earlier attempt created it, and its response was lost.
      if (!isAlreadyExists(error)) throw error
    }
  }

  /** Undefined if the event was not recorded before, or too long ago. */
  function countOn(one: Pending): Sending | undefined {
    const before = recorded.get(one.key)
    if (!before || one.lastMs - before.lastMs >= SAME_EVENT_MS) return undefined
    const { namespace, name } = before
    const count = before.count + one.count
    const { message } = one.details
    // `count` for readers of core/v1, `series` for readers of events.k8s.io.
    const series = { count, lastObservedTime: microTimestamp(one.lastMs) }
    const body = { count, message, lastTimestamp: timestamp(one.lastMs), series }
    const patch = { type: 'strategic', body } as const
    return {
      write: { do: 'patch', kind: eventKind, ref: { namespace, name }, patch },
      recorded: { namespace, name, count, lastMs: one.lastMs },
    }
  }

  function createWrite(one: Pending): Sending {
    const { about, details, count, firstMs, lastMs } = one
    const namespace = about.namespace ?? 'default' // for cluster-scoped objects
    one.name ??= `${(about.name ?? '').slice(0, 200)}.${randomUuid(random).replaceAll('-', '').slice(0, 16)}`
    const event: Event = {
      metadata: { namespace, name: one.name },
      involvedObject: about,
      type: details.type,
      reason: details.reason,
      message: details.message,
      ...(details.action ? { action: details.action } : {}),
      count,
      firstTimestamp: timestamp(firstMs),
      lastTimestamp: timestamp(lastMs),
      source: { component, host: instance },
      reportingComponent: component,
      reportingInstance: instance,
    }
    return {
      write: { do: 'create', kind: eventKind, object: event },
      recorded: { namespace, name: one.name, count, lastMs },
    }
  }

  /** Retries a few times; an event that cannot be recorded is dropped and logged. */
  async function deliver(one: Pending, signal: AbortSignal): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        await send(one)
        sent++
        return
      } catch (error) {
        const mayPass = error instanceof ApiError && (error.code >= 500 || error.code === 429)
        if (!mayPass || tries + 1 >= TRIES_MAX || signal.aborted) {
          dropped++
          const fields = { err: error, about: one.about, reason: one.details.reason }
          // Expected: the namespace is deleted with its events.
          if (isNamespaceGoing(error)) log.debug(fields, 'event not recorded: its namespace is being terminated')
          else log.warn(fields, 'event could not be recorded')
          return
        }
        await clock.sleep(backoffMs(RETRY, tries, random), signal).catch(() => {})
      }
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const stop = () => wake?.()
    signal.addEventListener('abort', stop, { once: true })
    while (!signal.aborted || pending.size > 0) {
      const batch: Pending[] = []
      for (const one of pending.values()) if (batch.push(one) === BATCH_MAX) break
      if (batch.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
        continue
      }
      for (const { key } of batch) pending.delete(key)
      if (batch.length > 1 && (await sendTogether(batch))) {
        if (pending.size > 0) await clock.sleep(BATCH_PAUSE_MS, signal).catch(() => {})
        continue
      }
      for (const one of batch) await deliver(one, signal)
    }
    signal.removeEventListener('abort', stop)
  }

  return { record, run, stats: () => ({ pending: pending.size, dropped, sent }) }
}

const isNamespaceGoing = (error: unknown): boolean =>
  error instanceof ApiError &&
  error.code === 403 &&
  (error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false)

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
const microTimestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`

function shortened(message: string): string {
  const bytes = Buffer.from(message)
  if (bytes.length <= MESSAGE_BYTES_MAX) return message
  return `${bytes
    .subarray(0, MESSAGE_BYTES_MAX - 4)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`
}

function lru<V>(max: number) {
  const values = new Map<string, V>()
  return {
    get(key: string): V | undefined {
      const value = values.get(key)
      if (value === undefined) return undefined
      values.delete(key)
      values.set(key, value)
      return value
    },
    set(key: string, value: V): void {
      values.delete(key)
      values.set(key, value)
      if (values.size > max) values.delete(values.keys().next().value!)
    },
  }
}
