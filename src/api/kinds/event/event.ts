// Declares core/v1 Event: a report about an object. This is the stored form; events-event.ts serves the same objects as
// events.k8s.io/v1.
import { defineKind } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { eventColumns } from './event-columns.ts'
import { EVENT_LIFETIME_MS, validateEvent } from './event-rules.ts'
import { type Event, event } from './event-schema.ts'

export const eventKind = defineKind<Event>({
  group: '',
  versions: ['v1'],
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  namespaced: true,
  type: event,

  nameErrors: pathSegmentProblems,
  validate: (object, errors) => validateEvent(object, 'reportingComponent', errors),

  selectableFields: {
    'involvedObject.kind': (object) => object.involvedObject.kind,
    'involvedObject.namespace': (object) => object.involvedObject.namespace,
    'involvedObject.name': (object) => object.involvedObject.name,
    'involvedObject.uid': (object) => object.involvedObject.uid,
    'involvedObject.apiVersion': (object) => object.involvedObject.apiVersion,
    'involvedObject.resourceVersion': (object) => object.involvedObject.resourceVersion,
    'involvedObject.fieldPath': (object) => object.involvedObject.fieldPath,
    reason: (object) => object.reason,
    reportingComponent: (object) => object.reportingComponent,
    source: (object) => object.source?.component || object.reportingComponent,
    type: (object) => object.type,
  },
  columns: eventColumns<Event>((object) => object),
  allowsCreateOnUpdate: true,
  deleteReturnsObject: false,
  expiresAtMs: (_object, { nowMs }) => nowMs + EVENT_LIFETIME_MS,
})
