// Records Events on objects without blocking or throwing. Repeated and similar events are combined, and the rate of events per
// object is limited.
import type { Kind, KubeObject } from '../api/kind.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import { ApiError, isAlreadyExists, isMissingRight, isNamespaceTerminating, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import { type Logger, silentLog } from '../base/log.ts'
import { microTimestamp, timestamp } from '../base/timestamps.ts'
import type { Client, CommitWrite } from '../client/client.ts'
import { backoffMs } from './backoff.ts'
import { createEventMemory, type EventIdentity, type RecordedEvent } from './event-memory.ts'

export interface EventRecorderOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** The reporting component, e.g. `stowage-provisioner`. */
  readonly component: string
  /** The host or pod of the component. Default: the name of the component. */
  readonly instance?: string
}

export interface EventDetails {
  readonly type: 'Normal' | 'Warning'
  /** The reason in CamelCase, for programs. */
  readonly reason: string
  readonly message: string
  readonly action?: string
}

export interface EventRecorder {
  record(kind: Kind, object: Readonly<KubeObject>, details: EventDetails): void
  /** Sends events until the signal is aborted and the pending events have been sent or dropped. */
  run(signal: AbortSignal): Promise<void>
  stats(): { readonly pending: number; readonly dropped: number; readonly sent: number }
}

const PENDING_MAX = 5_000 // further events are dropped and counted
/** Events per commit. Further pending events wait, because they would slow down a busy server. */
const EVENTS_PER_COMMIT_MAX = 64
const COMMIT_PAUSE_MS = 250
/** Maximum number of concurrent requests on a server without atomic commits, where every event is a request. */
const CONCURRENT_DELIVERIES_MAX = 8
/**
 * While more events than this are pending, they have the same priority as other requests, because further events would
 * be dropped. Otherwise other requests are preferred: in a burst of claims, volumes are created before events.
 */
const BACKGROUND_PENDING_MAX = PENDING_MAX / 2
const URGENT_DELIVERIES_MAX = 64
/** Retry delay while the component lacks permission to write events. The recorder does not watch roles, so it has to retry. */
const FORBIDDEN_RETRY_MS = 30_000
const MESSAGE_BYTES_MAX = 1_024
const ATTEMPTS_MAX = 5
const RETRY_BACKOFF = { baseMs: 1_000, maxMs: 30_000 }
/** An event that last occurred longer ago than this is not counted but created again, because it may have expired. */
const COUNTED_EVENT_MS_MAX = 3_000_000

interface PendingEvent {
  readonly key: string
  readonly identity: EventIdentity
  readonly involvedObject: Event['involvedObject']
  readonly details: EventDetails
  count: number
  firstMs: number
  lastMs: number
  /** The name of the Event object, set by the first attempt to create it. */
  name?: string
}

/** The write for an event, and the record to store after it. */
interface EventWrite {
  readonly write: Extract<CommitWrite, { do: 'create' | 'patch' }>
  readonly recordedEvent: RecordedEvent
}

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, clock, random, log = silentLog, component, instance = component } = options
  const pendingEvents = new Map<string, PendingEvent>()
  const memory = createEventMemory(clock)
  let dropped = 0
  let sent = 0
  let isDenied = false
  let wake: (() => void) | undefined

  function record(kind: Kind, object: Readonly<KubeObject>, details: EventDetails): void {
    const { namespace, name, uid, resourceVersion } = object.metadata
    const apiVersion = kind.group ? `${kind.group}/${kind.versions[0]}` : kind.versions[0]!
    const involvedObject = {
      kind: kind.kind,
      apiVersion,
      name,
      uid,
      resourceVersion,
      ...(namespace ? { namespace } : {}),
    }
    const objectId = uid ?? JSON.stringify([involvedObject.kind, namespace, name])
    const message = truncate(details.message)
    const identity = memory.identify(objectId, { ...details, message })
    const key = JSON.stringify([objectId, identity.type, identity.reason, identity.message])
    const pendingEvent = pendingEvents.get(key)
    if (pendingEvent) {
      pendingEvent.count++
      pendingEvent.lastMs = clock.nowMs()
      return
    }
    if (pendingEvents.size >= PENDING_MAX || !memory.takeToken(objectId)) {
      dropped++
      return
    }
    const nowMs = clock.nowMs()
    pendingEvents.set(key, {
      key,
      identity,
      involvedObject,
      details: {
        ...details,
        message: identity.message ?? truncate(`(combined from similar events): ${message}`),
      },
      count: 1,
      firstMs: nowMs,
      lastMs: nowMs,
    })
    wake?.()
  }

  async function send(event: PendingEvent): Promise<void> {
    const countWrite = buildCountPatch(event)
    if (countWrite) {
      try {
        await sendWrite(countWrite)
        memory.remember(event.identity, countWrite.recordedEvent)
        return
      } catch (error) {
        if (!isNotFound(error)) throw error
        // The event has expired: create a new one.
      }
    }
    const eventWrite = buildNewEvent(event)
    await sendWrite(eventWrite)
    memory.remember(event.identity, eventWrite.recordedEvent)
  }

  /** Sends all events in one commit. Returns false if none was written or the result is unknown. */
  async function commitEvents(nextEvents: readonly PendingEvent[]): Promise<boolean> {
    const eventWrites = nextEvents.map((event) => buildCountPatch(event) ?? buildNewEvent(event))
    try {
      if (!(await client.commitsAtomically())) return false
      await client.commit(
        eventWrites.map(({ write }) => write),
        { omitsObjects: true },
      )
    } catch {
      return false // the events are then sent individually
    }
    for (const [index, { identity }] of nextEvents.entries())
      memory.remember(identity, eventWrites[index]!.recordedEvent)
    sent += nextEvents.length
    return true
  }

  async function sendWrite({ write }: EventWrite): Promise<void> {
    const options = { isBackground: pendingEvents.size <= BACKGROUND_PENDING_MAX }
    if (write.do === 'patch') return void (await client.patch(write.kind, write.ref, write.patch, options))
    try {
      await client.create(write.kind, write.object, options)
    } catch (error) {
      // The name is random, so an earlier attempt created the event and its response was lost.
      if (!isAlreadyExists(error)) throw error
    }
  }

  /** Returns undefined if the event was not recorded before, or too long ago. */
  function buildCountPatch(event: PendingEvent): EventWrite | undefined {
    const recordedEvent = memory.recordedEventOf(event.identity)
    if (!recordedEvent || event.lastMs - recordedEvent.lastMs >= COUNTED_EVENT_MS_MAX) return undefined
    const { namespace, name } = recordedEvent
    const count = recordedEvent.count + event.count
    const { message } = event.details
    // `count` for readers of core/v1, `series` for readers of events.k8s.io.
    const series = { count, lastObservedTime: microTimestamp(event.lastMs) }
    const body = { count, message, lastTimestamp: timestamp(event.lastMs), series }
    const patch = { type: 'strategic', body } as const
    return {
      write: { do: 'patch', kind: eventKind, ref: { namespace, name }, patch },
      recordedEvent: { namespace, name, count, lastMs: event.lastMs },
    }
  }

  function buildNewEvent(event: PendingEvent): EventWrite {
    const { involvedObject, details, count, firstMs, lastMs } = event
    const namespace = involvedObject.namespace ?? 'default' // for cluster-scoped objects
    event.name ??= `${(involvedObject.name ?? '').slice(0, 200)}.${randomUuid(random).replaceAll('-', '').slice(0, 16)}`
    const object: Event = {
      metadata: { namespace, name: event.name },
      involvedObject,
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
      write: { do: 'create', kind: eventKind, object },
      recordedEvent: { namespace, name: event.name, count, lastMs },
    }
  }

  /**
   * Sends an event with retries. Drops and logs an event that cannot be recorded. Returns false if the component lacks
   * permission to record events and the signal is not aborted: the event may be the only one about its object, so it is
   * kept.
   */
  async function deliver(event: PendingEvent, signal: AbortSignal): Promise<boolean> {
    for (let attempt = 0; ; attempt++) {
      try {
        await send(event)
        sent++
        isDenied = false
        return true
      } catch (error) {
        if (isMissingRight(error) && !signal.aborted) {
          if (!isDenied)
            log.warn({ err: error }, 'events cannot be recorded; they are kept until permission is granted')
          isDenied = true
          return false
        }
        const isTransient = error instanceof ApiError && (error.code >= 500 || error.code === 429)
        if (!isTransient || attempt + 1 >= ATTEMPTS_MAX || signal.aborted) {
          dropped++
          const fields = { err: error, involvedObject: event.involvedObject, reason: event.details.reason }
          // Expected, because events are deleted with their namespace.
          if (isNamespaceTerminating(error)) log.debug(fields, 'event not recorded: its namespace is being terminated')
          else log.warn(fields, 'event could not be recorded')
          return true
        }
        await clock.sleep(backoffMs(RETRY_BACKOFF, attempt, random), signal).catch(() => {})
      }
    }
  }

  /** Delivers events, several at a time. Returns those left after permission to record events was denied. */
  async function deliverAll(events: readonly PendingEvent[], signal: AbortSignal): Promise<PendingEvent[]> {
    const waiting = [...events]
    const undelivered: PendingEvent[] = []
    async function deliverNext(): Promise<void> {
      for (let event = waiting.shift(); event; event = waiting.shift()) {
        if (!(await deliver(event, signal))) undelivered.push(event, ...waiting.splice(0))
      }
    }
    const deliveries = pendingEvents.size > BACKGROUND_PENDING_MAX ? URGENT_DELIVERIES_MAX : CONCURRENT_DELIVERIES_MAX
    await Promise.all(Array.from({ length: deliveries }, deliverNext))
    return undelivered
  }

  /** Makes an event pending again: combines it with a newer one of the same key, or drops it if too many are pending. */
  function requeue(event: PendingEvent): void {
    const pendingEvent = pendingEvents.get(event.key)
    if (pendingEvent) {
      pendingEvent.count += event.count
      pendingEvent.firstMs = event.firstMs
    } else if (pendingEvents.size < PENDING_MAX) pendingEvents.set(event.key, event)
    else dropped++
  }

  async function run(signal: AbortSignal): Promise<void> {
    const stop = () => wake?.()
    signal.addEventListener('abort', stop, { once: true })
    while (!signal.aborted || pendingEvents.size > 0) {
      const nextEvents: PendingEvent[] = []
      for (const event of pendingEvents.values()) if (nextEvents.push(event) === EVENTS_PER_COMMIT_MAX) break
      if (nextEvents.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
        continue
      }
      for (const { key } of nextEvents) pendingEvents.delete(key)
      if (nextEvents.length > 1 && (await commitEvents(nextEvents))) {
        if (pendingEvents.size > 0) await clock.sleep(COMMIT_PAUSE_MS, signal).catch(() => {})
        continue
      }
      const undelivered = await deliverAll(nextEvents, signal)
      for (const event of undelivered) requeue(event)
      if (undelivered.length > 0) await clock.sleep(FORBIDDEN_RETRY_MS, signal).catch(() => {})
    }
    signal.removeEventListener('abort', stop)
  }

  return { record, run, stats: () => ({ pending: pendingEvents.size, dropped, sent }) }
}

function truncate(message: string): string {
  const bytes = Buffer.from(message)
  if (bytes.length <= MESSAGE_BYTES_MAX) return message
  return `${bytes
    .subarray(0, MESSAGE_BYTES_MAX - 4)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`
}
