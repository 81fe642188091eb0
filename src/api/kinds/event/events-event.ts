// Declares events.k8s.io/v1 Event and converts it from and to the stored core/v1 Event.
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { eventKind } from './event.ts'
import { eventColumns } from './event-columns.ts'
import { EVENT_LIFETIME_MS, validateEvent, validateNewStyle, validateNewStyleUpdate } from './event-rules.ts'
import type { Event as StoredEvent } from './event-schema.ts'
import { type Event, event } from './events-event-schema.ts'

export const eventsEventKind = defineKind<Event>({
  group: 'events.k8s.io',
  versions: ['v1'],
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  namespaced: true,
  type: event,

  nameErrors: dns1123SubdomainProblems,
  validate(object, errors, _context, old) {
    const storedEvent = toStored(object)
    validateEvent(storedEvent, 'reportingController', errors)
    if (!old) validateNewStyle(storedEvent, errors)
  },
  validateUpdate: (next, old, errors) => validateNewStyleUpdate(toStored(next), toStored(old), errors),

  selectableFields: {
    'regarding.kind': (object) => object.regarding?.kind,
    'regarding.namespace': (object) => object.regarding?.namespace,
    'regarding.name': (object) => object.regarding?.name,
    'regarding.uid': (object) => object.regarding?.uid,
    'regarding.apiVersion': (object) => object.regarding?.apiVersion,
    'regarding.resourceVersion': (object) => object.regarding?.resourceVersion,
    'regarding.fieldPath': (object) => object.regarding?.fieldPath,
    reason: (object) => object.reason,
    reportingController: (object) => object.reportingController,
    type: (object) => object.type,
  },
  columns: eventColumns(toStored),
  allowsCreateOnUpdate: true,
  deleteReturnsObject: false,
  expiresAtMs: (_object, { nowMs }) => nowMs + EVENT_LIFETIME_MS,

  viewOf: { kind: eventKind, toStored, fromStored },
})

function toStored(object: Event): StoredEvent {
  return omitUndefined<StoredEvent>({
    metadata: object.metadata,
    involvedObject: object.regarding ?? {},
    reason: object.reason,
    message: object.note,
    source: object.deprecatedSource,
    firstTimestamp: object.deprecatedFirstTimestamp,
    lastTimestamp: object.deprecatedLastTimestamp,
    count: object.deprecatedCount,
    type: object.type,
    eventTime: object.eventTime,
    series: object.series && toStoredSeries(object.series),
    action: object.action,
    related: object.related,
    reportingComponent: object.reportingController ?? '',
    reportingInstance: object.reportingInstance ?? '',
  })
}

/** Converts a series to the stored form, which omits a zero count. */
function toStoredSeries({ count, ...series }: EventSeries): NonNullable<StoredEvent['series']> {
  return count === 0 ? series : { ...series, count }
}

type EventSeries = NonNullable<Event['series']>

function fromStored(storedEvent: StoredEvent): Event {
  return omitUndefined<Event>({
    metadata: storedEvent.metadata,
    eventTime: storedEvent.eventTime,
    series: storedEvent.series && { ...storedEvent.series, count: storedEvent.series.count ?? 0 },
    reportingController: storedEvent.reportingComponent || undefined,
    reportingInstance: storedEvent.reportingInstance || undefined,
    action: storedEvent.action,
    reason: storedEvent.reason,
    regarding: storedEvent.involvedObject,
    related: storedEvent.related,
    note: storedEvent.message,
    type: storedEvent.type,
    deprecatedSource: storedEvent.source,
    deprecatedFirstTimestamp: storedEvent.firstTimestamp,
    deprecatedLastTimestamp: storedEvent.lastTimestamp,
    deprecatedCount: storedEvent.count,
  })
}

type WithUndefined<T> = { [K in keyof T]: T[K] | undefined }

const omitUndefined = <T extends object>(object: WithUndefined<T>): T =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
