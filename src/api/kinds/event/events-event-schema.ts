// Events as events.k8s.io shows them: the stored events of event.ts under newer names.
// kinds/events-event.ts turns one into the other.
import { type Infer, int32, microTime, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'
import { eventSource } from './event-schema.ts'

export const eventSeries = object('io.k8s.api.events.v1.EventSeries', 'Tells that an event keeps happening.', {
  count: req(1, int32, 'How often it has happened so far.'),
  lastObservedTime: opt(2, microTime, 'When it last happened.'),
})

export const event = object(
  'io.k8s.api.events.v1.Event',
  'Something that happened to an object, for people to read; gone after an hour.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    eventTime: opt(2, microTime, 'When it first happened, to the microsecond.'),
    series: ptr(3, eventSeries, 'Set when it keeps happening.'),
    reportingController: opt(4, string, 'Program that reported it, such as example.com/provisioner.'),
    reportingInstance: opt(5, string, 'Which instance of that program, such as its pod.'),
    action: opt(6, string, 'What was done or not done to the object.'),
    reason: opt(7, string, 'What happened, in one word that programs may test.'),
    regarding: opt(8, objectReference, 'The object it happened to.'),
    related: ptr(9, objectReference, 'A second object that played a part.'),
    note: opt(10, string, 'What happened, in a sentence.'),
    type: opt(11, string, 'Normal or Warning.'),
    deprecatedSource: opt(12, eventSource, 'Who reported it; kept for events of the core group.'),
    deprecatedFirstTimestamp: opt(13, time, 'When it first happened; kept for events of the core group.'),
    deprecatedLastTimestamp: opt(14, time, 'When it last happened; kept for events of the core group.'),
    deprecatedCount: opt(15, int32, 'How often it happened; kept for events of the core group.'),
  },
)

export type Event = Infer<typeof event>
