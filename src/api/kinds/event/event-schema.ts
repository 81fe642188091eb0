// The schema of core/v1 Event, which is the stored form. events-event-schema.ts has the schema of events.k8s.io/v1 Event.
import { type Infer, int32, microTime, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'

export const eventSource = object('io.k8s.api.core.v1.EventSource', 'The reporter of an event.', {
  component: opt(1, string, 'Name of the reporting component.'),
  host: opt(2, string, 'Node of the reporting component.'),
})

const eventSeries = object('io.k8s.api.core.v1.EventSeries', 'The occurrences of a recurring event.', {
  count: opt(1, int32, 'Number of occurrences so far.'),
  lastObservedTime: opt(2, microTime, 'Time of the last occurrence.'),
})

export const event = object(
  'io.k8s.api.core.v1.Event',
  'A report of something that happened to an object; deleted one hour after its last change.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    involvedObject: req(2, objectReference, 'The object that the event is about.'),
    reason: opt(3, string, 'Machine-readable reason of the event, in CamelCase.'),
    message: opt(4, string, 'Human-readable description of the event.'),
    source: opt(5, eventSource, 'Reporter; deprecated form.'),
    firstTimestamp: opt(6, time, 'Time of the first occurrence; deprecated form.'),
    lastTimestamp: opt(7, time, 'Time of the last occurrence; deprecated form.'),
    count: opt(8, int32, 'Number of occurrences; deprecated form.'),
    type: opt(9, string, 'Normal or Warning.'),
    eventTime: opt(10, microTime, 'Time of the first occurrence.'),
    series: ptr(11, eventSeries, 'Set for a recurring event.'),
    action: opt(12, string, 'The action that was taken or that failed.'),
    related: ptr(13, objectReference, 'A secondary object of the event.'),
    reportingComponent: req(14, string, 'Name of the reporting controller, such as example.com/provisioner.'),
    reportingInstance: req(15, string, 'Instance of the reporting controller, such as its pod.'),
  },
)

export type Event = Infer<typeof event>
