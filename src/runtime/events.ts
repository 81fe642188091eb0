// Tells people what happens to objects: core Event objects, the same thing told again as a higher count on the first.
// Recording never waits, never throws and never floods: what is pending is bounded, each object may say only so much,
// and too many variations of one reason become a single event. What waits together travels together, where the server
// commits atomically; if it refuses, each goes alone.
import type { Kind, KubeObject } from '../api/kind.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import { ApiError } from '../api/status-error.ts'
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
  /** Who reports: `stowage-provisioner`. */
  readonly component: string
  /** Which of them; its host or pod. */
  readonly instance?: string
}

export interface Happening {
  readonly type: 'Normal' | 'Warning'
  /** One word in CamelCase that programs may test. */
  readonly reason: string
  readonly message: string
  readonly action?: string
}

export interface EventRecorder {
  record(kind: Kind, object: Readonly<KubeObject>, happening: Happening): void
  /** Sends until the signal fires, then sends what is still pending, once. */
  run(signal: AbortSignal): Promise<void>
  stats(): { readonly pending: number; readonly dropped: number; readonly sent: number }
}

const PENDING_MAX = 5_000 // beyond this, new happenings are dropped and counted
/** Sent in one commit. Where more is pending much is being done, and telling must not hold that up: the rest waits. */
const BATCH_MAX = 64
const BATCH_PAUSE_MS = 250
const REMEMBERED_MAX = 4_096 // beyond this, the one told longest ago starts a new event
const MESSAGE_BYTES_MAX = 1_024
/** Each object may tell this many at once, and one more every five minutes. */
const OBJECT_BURST = 25
const OBJECT_REFILL_MS = 300_000
/** More different messages than this for one object and reason within ten minutes are told as one. */
const VARIATIONS_MAX = 10
const VARIATIONS_MS = 600_000
const TRIES_MAX = 5
const RETRY = { baseMs: 1_000, maxMs: 30_000 }
/** The server forgets events after an hour; a count on one older than this would be about nothing. */
const SAME_EVENT_MS = 3_000_000

interface Pending {
  readonly key: string
  readonly about: Event['involvedObject']
  readonly happening: Happening
  count: number
  firstMs: number
  lastMs: number
  /** What its event is called, once that was tried. */
  name?: string
}

/** How it is told, and what is then to be remembered. */
interface Sending {
  readonly write: Extract<CommitWrite, { do: 'create' | 'patch' }>
  readonly told: Told
}

interface Told {
  readonly namespace: string
  readonly name: string
  count: number
  lastMs: number
}

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, clock, random, log = silentLog, component, instance = component } = options
  const pending = new Map<string, Pending>()
  const told = lru<Told>(REMEMBERED_MAX)
  const buckets = lru<{ tokens: number; atMs: number }>(REMEMBERED_MAX)
  const variations = lru<{ messages: Set<string>; sinceMs: number }>(REMEMBERED_MAX)
  let dropped = 0
  let sent = 0
  let wake: (() => void) | undefined

  function record(kind: Kind, object: Readonly<KubeObject>, happening: Happening): void {
    const { namespace, name, uid, resourceVersion } = object.metadata
    const apiVersion = kind.group ? `${kind.group}/${kind.versions[0]}` : kind.versions[0]!
    const about = { kind: kind.kind, apiVersion, name, uid, resourceVersion, ...(namespace ? { namespace } : {}) }
    const identity = JSON.stringify([about.kind, namespace, name, uid])
    const asTold = combined(identity, { ...happening, message: shortened(happening.message) })
    const key = JSON.stringify([identity, asTold.key])
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
    pending.set(key, { key, about, happening: asTold.happening, count: 1, firstMs: nowMs, lastMs: nowMs })
    wake?.()
  }

  /** What tells the event from others: its words, unless it has had too many words lately. */
  function combined(identity: string, happening: Happening): { key: string; happening: Happening } {
    const { type, reason, message } = happening
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
        happening: { ...happening, message: shortened(`(combined from similar events): ${message}`) },
      }
    }
    seen.messages.add(message)
    return { key: JSON.stringify([type, reason, message]), happening }
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
        told.set(one.key, counting.told)
        return
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 404)) throw error // it has expired: a new one then
      }
    }
    const telling = tellNew(one)
    await sendAlone(telling)
    told.set(one.key, telling.told)
  }

  /** All of them or none; false when it was none, or nobody knows. */
  async function sendTogether(batch: readonly Pending[]): Promise<boolean> {
    const sendings = batch.map((one) => countOn(one) ?? tellNew(one))
    try {
      if (!(await client.commitsAtomically())) return false
      await client.commit(sendings.map(({ write }) => write))
    } catch {
      return false // sent alone, each shows whether it was the reason
    }
    for (const [index, { key }] of batch.entries()) told.set(key, sendings[index]!.told)
    sent += batch.length
    return true
  }

  async function sendAlone({ write }: Sending): Promise<void> {
    if (write.do === 'patch') return void (await client.patch(write.kind, write.ref, write.patch))
    try {
      await client.create(write.kind, write.object)
    } catch (error) {
      // Nobody else makes up that name: it is in from an earlier try whose answer was lost.
      if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error
    }
  }

  /** Nothing where it was not told before, or too long ago. */
  function countOn(one: Pending): Sending | undefined {
    const before = told.get(one.key)
    if (!before || one.lastMs - before.lastMs >= SAME_EVENT_MS) return undefined
    const { namespace, name } = before
    const count = before.count + one.count
    const { message } = one.happening
    // Both ways of counting: `count` for those who know events of old, the series for those who read events.k8s.io.
    const series = { count, lastObservedTime: microTimestamp(one.lastMs) }
    const body = { count, message, lastTimestamp: timestamp(one.lastMs), series }
    const patch = { type: 'strategic', body } as const
    return {
      write: { do: 'patch', kind: eventKind, ref: { namespace, name }, patch },
      told: { namespace, name, count, lastMs: one.lastMs },
    }
  }

  function tellNew(one: Pending): Sending {
    const { about, happening, count, firstMs, lastMs } = one
    const namespace = about.namespace ?? 'default' // where those of cluster-wide objects live
    one.name ??= `${(about.name ?? '').slice(0, 200)}.${randomUuid(random).replaceAll('-', '').slice(0, 16)}`
    const event: Event = {
      metadata: { namespace, name: one.name },
      involvedObject: about,
      type: happening.type,
      reason: happening.reason,
      message: happening.message,
      ...(happening.action ? { action: happening.action } : {}),
      count,
      firstTimestamp: timestamp(firstMs),
      lastTimestamp: timestamp(lastMs),
      source: { component, host: instance },
      reportingComponent: component,
      reportingInstance: instance,
    }
    return {
      write: { do: 'create', kind: eventKind, object: event },
      told: { namespace, name: one.name, count, lastMs },
    }
  }

  /** Tries a few times; whatever cannot be told is dropped with a line in the log. */
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
          const fields = { err: error, about: one.about, reason: one.happening.reason }
          // Whoever would read it is going with its namespace.
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
