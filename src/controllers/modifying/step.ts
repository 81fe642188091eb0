// The result of one step of a modification, and the recording of its events.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { done, type EventDetails, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import type { WriteResult } from './writes.ts'

/** An outcome for the work queue, or a changed claim that requires a new plan. */
export type Step = Outcome | { readonly is: 'changed'; readonly subject: Subject }

export const RETRY_DELAY_MS = 50

export const outcomeOfWrite = ({ is }: Exclude<WriteResult, { is: 'written' }>): Outcome =>
  is === 'deleted' ? done : retryAfter(RETRY_DELAY_MS, 'the claim changed during the reconcile')

export const recordEvent = (
  { claim }: Subject,
  event: EventDetails,
  { events }: Pick<ModifyingContext, 'events'>,
): void => events.record(persistentVolumeClaimKind, claim, event)
