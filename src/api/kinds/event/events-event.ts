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
    const stored = toStored(object)
    validateEvent(stored, 'reportingController', errors)
    if (!old) validateNewStyle(stored, errors)
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

function fromStored(stored: StoredEvent): Event {
  return omitUndefined<Event>({
    metadata: stored.metadata,
    eventTime: stored.eventTime,
    series: stored.series && { ...stored.series, count: stored.series.count ?? 0 },
    reportingController: stored.reportingComponent || undefined,
    reportingInstance: stored.reportingInstance || undefined,
    action: stored.action,
    reason: stored.reason,
    regarding: stored.involvedObject,
    related: stored.related,
    note: stored.message,
    type: stored.type,
    deprecatedSource: stored.source,
    deprecatedFirstTimestamp: stored.firstTimestamp,
    deprecatedLastTimestamp: stored.lastTimestamp,
    deprecatedCount: stored.count,
  })
}

type WithUndefined<T> = { [K in keyof T]: T[K] | undefined }

const omitUndefined = <T extends object>(object: WithUndefined<T>): T =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
