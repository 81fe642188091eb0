// Declares TimelineReview, with which a client reads the timeline of a claim or volume. It is not stored.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { STOWAGE_GROUP } from '../operation/operation.ts'
import { type TimelineReview, timelineReview } from './timeline-schema.ts'

export const timelineReviewKind = defineKind<TimelineReview>({
  group: STOWAGE_GROUP,
  versions: ['v1'],
  kind: 'TimelineReview',
  plural: 'timelinereviews',
  singular: 'timelinereview',
  namespaced: false,
  type: timelineReview,
  isReview: true,
  nameErrors: () => [],
  validate() {},
  columns: [nameColumn, createdAtColumn],
  deleteReturnsObject: false,
})
