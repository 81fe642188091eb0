// The schema of TimelineReview. timeline-review.ts declares the kind.
import { boolean, double, type Infer, list, microTime, object, oneOf, opt, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'

/** The kinds of objects that have a timeline. */
export const TIMELINE_KINDS = ['PersistentVolumeClaim', 'PersistentVolume'] as const
export type TimelineKind = (typeof TIMELINE_KINDS)[number]

export const ENTRY_TYPES = ['Change', 'Attempt', 'Call', 'Event'] as const

/**
 * The steps from the creation of a claim until a pod uses its volume, in their usual order. With a class that binds
 * immediately, Scheduled follows Bound.
 */
export const STEPS = ['Created', 'Scheduled', 'Provisioned', 'Bound', 'Attached', 'Published'] as const
export type StepName = (typeof STEPS)[number]

const timelineReviewSpec = object('dev.stowage.v1.TimelineReviewSpec', 'The object whose timeline is requested.', {
  kind: req(1, oneOf(...TIMELINE_KINDS), 'PersistentVolumeClaim or PersistentVolume.'),
  namespace: opt(2, string, 'Namespace of a claim.'),
  name: req(3, string, 'Name of the claim or volume, which may be deleted.'),
  uid: opt(4, string, 'UID of the object, if several had the name. Default: the newest.'),
})

const timelineEntry = object(
  'dev.stowage.v1.TimelineEntry',
  'A committed change to an object, an attempt of a component, a call to a CSI driver, or an event.',
  {
    time: req(1, microTime, 'When the change was made, or the attempt or call started.'),
    durationMs: opt(2, double, 'How long an attempt or a call took, in milliseconds.'),
    type: req(3, oneOf(...ENTRY_TYPES), 'Change, Attempt, Call or Event.'),
    object: opt(4, objectReference, 'The object of a change, an attempt or an event.'),
    action: req(
      5,
      string,
      'The verb of a change, the operation of an attempt, the method of a call or the reason of an event.',
    ),
    user: opt(6, string, 'User who requested the change.'),
    manager: opt(7, string, 'Field manager of the change.'),
    component: opt(8, string, 'Component of the attempt or event, or the called driver.'),
    process: opt(9, string, 'Process of the attempt or call.'),
    result: opt(10, string, 'Done, Retry or Stuck for an attempt; the gRPC code for a call; the type of an event.'),
    message: opt(11, string, 'Human-readable result of an attempt, a call or an event.'),
    changes: opt(12, list(string), 'What the change has set, such as "phase Pending → Bound".'),
  },
)
export type TimelineEntry = Infer<typeof timelineEntry>

const timelineStep = object('dev.stowage.v1.TimelineStep', 'A step that the claim has reached.', {
  name: req(1, oneOf(...STEPS), 'Created, Scheduled, Provisioned, Bound, Attached or Published.'),
  time: req(2, microTime, 'When it was first reached.'),
})
export type TimelineStep = Infer<typeof timelineStep>

const timelineReviewStatus = object('dev.stowage.v1.TimelineReviewStatus', 'The timeline of a claim or volume.', {
  uid: opt(1, string, 'The object whose timeline this is. Absent if the journal has none with the name.'),
  otherUids: opt(2, list(string), 'Other objects that had the same name, newest first.'),
  steps: opt(3, list(timelineStep), 'The steps that were reached, by time.'),
  entries: opt(4, list(timelineEntry), 'What happened, oldest first.'),
  isTruncated: opt(5, boolean, 'Whether older entries were left out.'),
})
export type Timeline = Infer<typeof timelineReviewStatus>

export const timelineReview = object(
  'dev.stowage.v1.TimelineReview',
  'Requests the timeline of a claim or volume. It is not stored. The user must be allowed to get the object.',
  {
    metadata: req(1, objectMeta, 'Not used.'),
    spec: req(2, timelineReviewSpec, 'The object.'),
    status: opt(3, timelineReviewStatus, 'The timeline, set by the server.'),
  },
)
export type TimelineReview = Infer<typeof timelineReview>
export type TimelineRequest = TimelineReview['spec']
