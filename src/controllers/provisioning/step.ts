// The result of one action on a claim: an outcome for the work queue, or a changed stage that must be planned again.
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  /** The stage changed and must be planned again. If the plan is to call the storage again, back off for this reason. */
  | { readonly is: 'changed'; readonly message: string }

export const changed = (message: string): Step => ({ is: 'changed', message })
