// The schema of events.k8s.io/v1 Event, which has the fields of core/v1 Event with newer names. events-event.ts converts
// between them.
import { type Infer, int32, microTime, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'
import { eventSource } from './event-schema.ts'

const eventSeries = object('io.k8s.api.events.v1.EventSeries', 'The occurrences of a recurring event.', {
  count: req(1, int32, 'Number of occurrences so far.'),
  lastObservedTime: opt(2, microTime, 'Time of the last occurrence.'),
})

export const event = object(
  'io.k8s.api.events.v1.Event',
  'A report of something that happened to an object; deleted one hour after its last change.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    eventTime: opt(2, microTime, 'Time of the first occurrence.'),
    series: ptr(3, eventSeries, 'Set for a recurring event.'),
    reportingController: opt(4, string, 'Name of the reporting controller, such as example.com/provisioner.'),
    reportingInstance: opt(5, string, 'Instance of the reporting controller, such as its pod.'),
    action: opt(6, string, 'The action that was taken or that failed.'),
    reason: opt(7, string, 'Machine-readable reason of the event, in CamelCase.'),
    regarding: opt(8, objectReference, 'The object that the event is about.'),
    related: ptr(9, objectReference, 'A secondary object of the event.'),
    note: opt(10, string, 'Human-readable description of the event.'),
    type: opt(11, string, 'Normal or Warning.'),
    deprecatedSource: opt(12, eventSource, 'Reporter; only for events of the core group.'),
    deprecatedFirstTimestamp: opt(13, time, 'Time of the first occurrence; only for events of the core group.'),
    deprecatedLastTimestamp: opt(14, time, 'Time of the last occurrence; only for events of the core group.'),
    deprecatedCount: opt(15, int32, 'Number of occurrences; only for events of the core group.'),
  },
)

export type Event = Infer<typeof event>
