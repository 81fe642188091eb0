// Tracks the stored events by age, with their number and bytes in each namespace and in total, and decides which events
// exceed the limits: those whose last change is the oldest.
import type { Revision } from '../../store/index.ts'

interface Limit {
  readonly events: number
  readonly bytes: number
}

export interface EventLimits {
  readonly namespace: Limit
  readonly total: Limit
}

interface StoredEvent {
  readonly key: string
  readonly namespace: string
  readonly revision: Revision
  readonly bytes: number
}

export interface ExcessEvent extends StoredEvent {
  /** The limit that is exceeded. */
  readonly limit: keyof EventLimits
}

/** Share of a limit that is freed at once, so that not every new event causes a deletion. */
const FREED_SHARE = 0.01

/** Events in the order of their last change. */
class Events {
  readonly #byKey = new Map<string, StoredEvent>()
  bytes = 0

  get size(): number {
    return this.#byKey.size
  }

  put(event: StoredEvent): void {
    this.remove(event.key)
    this.#byKey.set(event.key, event)
    this.bytes += event.bytes
  }

  remove(key: string): StoredEvent | undefined {
    const event = this.#byKey.get(key)
    if (!event) return undefined
    this.#byKey.delete(key)
    this.bytes -= event.bytes
    return event
  }

  exceeds(limit: Limit): boolean {
    return this.size > limit.events || this.bytes > limit.bytes
  }

  /** Returns the oldest events, as many as must be deleted to free FREED_SHARE of the limit. */
  findExcess({ events, bytes }: Limit): StoredEvent[] {
    const target = { events: events * (1 - FREED_SHARE), bytes: bytes * (1 - FREED_SHARE) }
    const excess: StoredEvent[] = []
    let remainingBytes = this.bytes
    for (const event of this.#byKey.values()) {
      if (this.size - excess.length <= target.events && remainingBytes <= target.bytes) break
      excess.push(event)
      remainingBytes -= event.bytes
    }
    return excess
  }
}

export class EventLedger {
  readonly #limits: EventLimits
  readonly #all = new Events()
  readonly #byNamespace = new Map<string, Events>()
  /** Namespaces that may exceed their limit. */
  readonly #changedNamespaces = new Set<string>()

  constructor(limits: EventLimits) {
    this.#limits = limits
  }

  get events(): number {
    return this.#all.size
  }

  get bytes(): number {
    return this.#all.bytes
  }

  /** Adds an event, or makes a changed event the newest. */
  put(event: StoredEvent): void {
    this.#all.put(event)
    let events = this.#byNamespace.get(event.namespace)
    if (!events) {
      events = new Events()
      this.#byNamespace.set(event.namespace, events)
    }
    events.put(event)
    this.#changedNamespaces.add(event.namespace)
  }

  remove(key: string): void {
    const event = this.#all.remove(key)
    if (!event) return
    const events = this.#byNamespace.get(event.namespace)
    events?.remove(key)
    if (events?.size === 0) this.#byNamespace.delete(event.namespace)
  }

  /** Removes and returns the events that exceed a limit. */
  takeExcess(): ExcessEvent[] {
    const excess: ExcessEvent[] = []
    const take = (events: Events, limit: keyof EventLimits) => {
      if (!events.exceeds(this.#limits[limit])) return
      for (const event of events.findExcess(this.#limits[limit])) {
        excess.push({ ...event, limit })
        this.remove(event.key)
      }
    }
    for (const namespace of this.#changedNamespaces) {
      const events = this.#byNamespace.get(namespace)
      if (events) take(events, 'namespace')
    }
    this.#changedNamespaces.clear()
    take(this.#all, 'total')
    return excess
  }
}
