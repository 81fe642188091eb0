// How one action on a claim ends, and what everyone is told of it.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { done, type Happening, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import type { Written } from './writing.ts'

/** An outcome for the work queue, or a claim that is planned anew. */
export type Step = Outcome | { readonly is: 'changed'; readonly subject: Subject }

export const READ_AGAIN_MS = 50

export const afterWrite = ({ is }: Exclude<Written, { is: 'written' }>): Outcome =>
  is === 'gone' ? done : retryAfter(READ_AGAIN_MS, 'the claim changed while it was being worked on')

export const tell = ({ claim }: Subject, happening: Happening, { events }: Pick<ModifyingContext, 'events'>): void =>
  events.record(persistentVolumeClaimKind, claim, happening)
