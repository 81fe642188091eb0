// Builds the Activity for a queue's attempt or a CSI driver call.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { VolumeCall } from '../../base/operation-details.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import type { Outcome } from '../outcome.ts'
import type { QueueAttempt } from '../work-queue.ts'
import type { OperationSubject } from './operation-of.ts'

/** The kinds whose attempts the journal of volumes records. */
const RECORDED_KINDS: ReadonlySet<string> = new Set([
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'Pod',
])
const RESULTS: Readonly<Record<Outcome['is'], string>> = { done: 'Done', retry: 'Retry', stuck: 'Stuck' }
/** Longer messages are truncated. */
const MESSAGE_LENGTH_MAX = 1_000

/** Returns the start of an activity that ends now, in whole milliseconds. */
export const startOf = ({ durationMs }: { readonly durationMs: number }, nowMs: number): number =>
  Math.floor(nowMs - durationMs)

/** Returns undefined for objects of other kinds. */
export function activityOfAttempt(
  { durationMs, attempt, outcome }: QueueAttempt,
  { object, operation }: OperationSubject,
  component: string,
  startMs: number,
): Activity | undefined {
  if (!RECORDED_KINDS.has(object.kind)) return undefined
  const { message, details } = outcome.is === 'done' ? {} : outcome
  const reason = details?.reason
  const activity: Activity = {
    start: microTimestamp(startMs),
    durationMs: roundToMicroseconds(durationMs),
    result: RESULTS[outcome.is],
    object,
    component,
    operation: details?.operation ?? operation,
    attempt,
  }
  if (reason) activity.reason = reason
  if (message) activity.message = message.slice(0, MESSAGE_LENGTH_MAX)
  return activity
}

export const activityOfCall = (
  { driver, method, code, volume, durationMs, message }: VolumeCall,
  startMs: number,
): Activity => {
  const activity: Activity = {
    start: microTimestamp(startMs),
    durationMs: roundToMicroseconds(durationMs),
    result: code,
    driver,
    method,
    volume,
  }
  if (message) activity.message = message.slice(0, MESSAGE_LENGTH_MAX)
  return activity
}

/** Returns the time with a resolution of one microsecond, so that JSON has few digits. */
const roundToMicroseconds = (ms: number): number => Math.round(ms * 1_000) / 1_000
