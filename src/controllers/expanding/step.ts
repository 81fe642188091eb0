// How one step of an expansion ends: with an outcome for the work queue, or with a changed state to plan again.
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  | { readonly is: 'changed' }
  /** The driver call failed. Plan again, because the request may have changed, but do not retry this size at once. */
  | { readonly is: 'tried'; readonly target: string; readonly because: string; readonly isSlow: boolean }

export const changed: Step = Object.freeze({ is: 'changed' })

export const tried = (target: string, because: string, { isSlow = false } = {}): Step => ({
  is: 'tried',
  target,
  because,
  isSlow,
})
