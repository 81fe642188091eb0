// How one step of a growth ends: with an outcome for the work queue, or with a changed situation that is planned anew.
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  | { readonly is: 'changed' }
  /** The driver was asked in vain. Plan again, for the user may want another size by now; but not this one at once. */
  | { readonly is: 'tried'; readonly target: string; readonly because: string; readonly isSlow: boolean }

export const changed: Step = Object.freeze({ is: 'changed' })

export const tried = (target: string, because: string, { isSlow = false } = {}): Step => ({
  is: 'tried',
  target,
  because,
  isSlow,
})
