// The result of one action on a claim: an outcome for the work queue, or a changed stage from which to plan again.
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  /** Plan again. If the plan is to call the storage again, back off for this reason instead. */
  | { readonly is: 'changed'; readonly because: string }

export const changed = (because: string): Step => ({ is: 'changed', because })
