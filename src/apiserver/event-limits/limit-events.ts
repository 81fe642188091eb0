// Deletes the oldest events when the events of a namespace, or of all namespaces, exceed a number or a size.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Store, StoreClosedError } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import { EVENTS_PREFIX } from '../keys.ts'
import { EventLedger, type EventLimits, type ExcessEvent } from './event-ledger.ts'

const NAMESPACE_EVENTS_MAX = 5_000
const NAMESPACE_EVENT_BYTES_MAX = 8 * 1024 * 1024
const EVENTS_MAX = 20_000
const EVENT_BYTES_MAX = 32 * 1024 * 1024
/** Deletions per transaction. A transaction on etcd can contain 128 writes. */
const DELETIONS_MAX = 100
const RETRY_DELAY_MS = 1_000

const LIMITS: EventLimits = {
  namespace: { events: NAMESPACE_EVENTS_MAX, bytes: NAMESPACE_EVENT_BYTES_MAX },
  total: { events: EVENTS_MAX, bytes: EVENT_BYTES_MAX },
}

export interface EventLimitOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Registry
  readonly signal: AbortSignal
  readonly limits?: EventLimits
}

/** Resolves when the stored events are counted. Deletes excess events until the signal is aborted. */
export async function limitEvents(options: EventLimitOptions): Promise<void> {
  const { store, clock, log, registry, signal, limits = LIMITS } = options
  const ledger = new EventLedger(limits)
  const removedTotal = registerMetrics(registry, ledger)
  let isDeleting = false

  async function deleteExcess(): Promise<void> {
    if (isDeleting) return
    isDeleting = true
    let excess: ExcessEvent[] = []
    try {
      while (!signal.aborted) {
        if (excess.length === 0) excess = ledger.takeExcess()
        if (excess.length === 0) break
        const batch = excess.slice(0, DELETIONS_MAX)
        for (const { limit } of await deleteUnchangedEvents(store, batch)) removedTotal.inc({ limit })
        excess = excess.slice(DELETIONS_MAX)
      }
    } catch (error) {
      if (signal.aborted || error instanceof StoreClosedError) return
      for (const event of excess) ledger.put(event)
      log.warn({ reason: (error as Error).message }, 'cannot delete the oldest events; retrying in a second')
      clock.after(RETRY_DELAY_MS, () => void deleteExcess())
    } finally {
      isDeleting = false
    }
  }

  await followStore({
    store,
    prefix: EVENTS_PREFIX,
    description: 'events',
    clock,
    log,
    signal,
    onEntry(key, entry) {
      if (!entry) return ledger.remove(key)
      const namespace = key.slice(EVENTS_PREFIX.length, key.indexOf('/', EVENTS_PREFIX.length))
      ledger.put({ key, namespace, revision: entry.modRevision, bytes: entry.value.length })
    },
    onApplied: () => void deleteExcess(),
  })
}

/** Deletes the events that have not changed since they were counted, and returns them. */
async function deleteUnchangedEvents(store: Store, events: readonly ExcessEvent[]): Promise<readonly ExcessEvent[]> {
  let unchangedEvents: readonly ExcessEvent[] = []
  await store.transact((view) => {
    unchangedEvents = events.filter(({ key, revision }) => view.get(key)?.modRevision === revision)
    return unchangedEvents.map(({ key }) => ({ delete: key }))
  })
  return unchangedEvents
}

function registerMetrics(registry: Registry, ledger: EventLedger): Counter<'limit'> {
  const registers = [registry]
  new Gauge({
    name: 'stowage_events',
    help: 'Stored events.',
    registers,
    collect() {
      this.set(ledger.events)
    },
  })
  new Gauge({
    name: 'stowage_events_bytes',
    help: 'Bytes of stored events.',
    registers,
    collect() {
      this.set(ledger.bytes)
    },
  })
  return new Counter({
    name: 'stowage_events_removed_total',
    help: 'Events that were deleted before they expired, because there were too many in their namespace or in total.',
    labelNames: ['limit'],
    registers,
  })
}
