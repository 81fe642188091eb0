// How one step of a modification ends, and its events.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { done, type EventDetails, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import type { Written } from './writes.ts'

/** An outcome for the work queue, or a changed claim to plan again. */
export type Step = Outcome | { readonly is: 'changed'; readonly subject: Subject }

export const REREAD_MS = 50

export const afterWrite = ({ is }: Exclude<Written, { is: 'written' }>): Outcome =>
  is === 'gone' ? done : retryAfter(REREAD_MS, 'the claim changed during the reconcile')

export const recordEvent = (
  { claim }: Subject,
  event: EventDetails,
  { events }: Pick<ModifyingContext, 'events'>,
): void => events.record(persistentVolumeClaimKind, claim, event)
