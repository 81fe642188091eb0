// The memory of an event recorder: for the objects with the latest events, the tokens of the rate limit and the
// recorded events. With it, the recorder counts repeated events and combines events with too many different messages.
// All data of an object is in one entry, because this memory is always full under a load of new objects.
import type { Clock } from '../base/clock.ts'
import { LruCache } from '../base/lru-cache.ts'
import type { EventDetails } from './events.ts'

/** Beyond this number of objects, the events of the least recently used ones are forgotten. */
const OBJECTS_MAX = 1_024
/** Rate limit per object: a burst of this size, and one more event every five minutes. */
const OBJECT_BURST = 25
const OBJECT_REFILL_INTERVAL_MS = 300_000
/** More different messages than this for one object, type and reason within ten minutes are combined. */
const VARIATIONS_MAX = 10
const VARIATION_WINDOW_MS = 600_000

/** The Event object of a recorded event. */
export interface RecordedEvent {
  readonly namespace: string
  readonly name: string
  readonly count: number
  readonly lastMs: number
}

interface ObjectEvents {
  tokens: number
  atMs: number
  groups: EventGroup[]
}

/** The events of an object with the same type and reason. */
interface EventGroup {
  readonly type: EventDetails['type']
  readonly reason: string
  sinceMs: number
  variations: Variation[]
  /** The Event object for combined messages. */
  combined: RecordedEvent | undefined
}

interface Variation {
  readonly message: string
  recordedEvent: RecordedEvent | undefined
}

/** Identifies what is remembered of an event. `message` is undefined for combined events. */
export interface EventIdentity {
  readonly object: string
  readonly type: EventDetails['type']
  readonly reason: string
  readonly message: string | undefined
}

export function createEventMemory(clock: Pick<Clock, 'monotonicMs' | 'nowMs'>) {
  const objects = new LruCache<string, ObjectEvents>(OBJECTS_MAX)

  function eventsOf(object: string): ObjectEvents {
    let events = objects.get(object)
    if (!events) {
      events = { tokens: OBJECT_BURST, atMs: clock.monotonicMs(), groups: [] }
      objects.set(object, events)
    }
    return events
  }

  const groupOf = ({ groups }: ObjectEvents, { type, reason }: Pick<EventDetails, 'type' | 'reason'>) =>
    groups.find((group) => group.type === type && group.reason === reason)

  function newGroup(events: ObjectEvents, { type, reason }: Pick<EventDetails, 'type' | 'reason'>): EventGroup {
    const group: EventGroup = {
      type,
      reason,
      sinceMs: clock.monotonicMs(),
      variations: [],
      combined: undefined,
    }
    events.groups = [...events.groups, group] // push() would reserve space for sixteen more
    return group
  }

  const isRecent = (recordedEvent: RecordedEvent | undefined) =>
    recordedEvent !== undefined && clock.nowMs() - recordedEvent.lastMs <= VARIATION_WINDOW_MS

  return {
    /** Returns the identity of an event, which is equal for repeated events and for events that are combined. */
    identify(object: string, { type, reason, message }: EventDetails): EventIdentity {
      const events = eventsOf(object)
      const group = groupOf(events, { type, reason }) ?? newGroup(events, { type, reason })
      const nowMs = clock.monotonicMs()
      if (nowMs - group.sinceMs > VARIATION_WINDOW_MS) {
        group.sinceMs = nowMs
        group.variations = group.variations.filter(
          (variation) => variation.message === message || isRecent(variation.recordedEvent),
        )
      }
      if (group.variations.some((variation) => variation.message === message)) return { object, type, reason, message }
      if (group.variations.length >= VARIATIONS_MAX) return { object, type, reason, message: undefined }
      group.variations = [...group.variations, { message, recordedEvent: undefined }]
      return { object, type, reason, message }
    },

    /** Returns whether the rate limit of the object allows another event, and counts it. */
    takeToken(object: string): boolean {
      const events = eventsOf(object)
      const nowMs = clock.monotonicMs()
      const tokens = Math.min(OBJECT_BURST, events.tokens + (nowMs - events.atMs) / OBJECT_REFILL_INTERVAL_MS)
      events.tokens = tokens < 1 ? tokens : tokens - 1
      events.atMs = nowMs
      return tokens >= 1
    },

    /** Returns the Event object that was last written for an event. */
    recordedEventOf({ object, type, reason, message }: EventIdentity): RecordedEvent | undefined {
      const events = objects.get(object)
      const group = events && groupOf(events, { type, reason })
      if (message === undefined) return group?.combined
      return group?.variations.find((variation) => variation.message === message)?.recordedEvent
    },

    remember({ object, type, reason, message }: EventIdentity, recordedEvent: RecordedEvent): void {
      const events = objects.get(object)
      const group = events && groupOf(events, { type, reason })
      if (!group) return // forgotten, because there were many other objects
      if (message === undefined) group.combined = recordedEvent
      else
        for (const variation of group.variations)
          if (variation.message === message) variation.recordedEvent = recordedEvent
    },
  }
}
