// Events as they are stored, in the core group: what happened to an object, told to people.
// events-event.ts declares the other face of the same objects.
import { type Infer, int32, microTime, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'

export const eventSource = object('io.k8s.api.core.v1.EventSource', 'Who reported an event.', {
  component: opt(1, string, 'Program that reported it.'),
  host: opt(2, string, 'Node on which that program runs.'),
})

export const eventSeries = object('io.k8s.api.core.v1.EventSeries', 'Tells that an event keeps happening.', {
  count: opt(1, int32, 'How often it has happened so far.'),
  lastObservedTime: opt(2, microTime, 'When it last happened.'),
})

export const event = object(
  'io.k8s.api.core.v1.Event',
  'Something that happened to an object, for people to read; gone after an hour.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    involvedObject: req(2, objectReference, 'The object it happened to.'),
    reason: opt(3, string, 'What happened, in one word that programs may test.'),
    message: opt(4, string, 'What happened, in a sentence.'),
    source: opt(5, eventSource, 'Who reported it; older form.'),
    firstTimestamp: opt(6, time, 'When it first happened; older form.'),
    lastTimestamp: opt(7, time, 'When it last happened; older form.'),
    count: opt(8, int32, 'How often it happened; older form.'),
    type: opt(9, string, 'Normal or Warning.'),
    eventTime: opt(10, microTime, 'When it first happened, to the microsecond.'),
    series: ptr(11, eventSeries, 'Set when it keeps happening.'),
    action: opt(12, string, 'What was done or not done to the object.'),
    related: ptr(13, objectReference, 'A second object that played a part.'),
    reportingComponent: req(14, string, 'Program that reported it, such as example.com/provisioner.'),
    reportingInstance: req(15, string, 'Which instance of that program, such as its pod.'),
  },
)

export type Event = Infer<typeof event>
