// How one action on a claim ends: with an outcome for the work queue, or with a changed situation that is planned anew.
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  /** Plan again; but do not ask the storage again at once, because of this. */
  | { readonly is: 'changed'; readonly because: string }

export const changed = (because: string): Step => ({ is: 'changed', because })
