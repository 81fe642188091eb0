// The result of one step of an expansion: an outcome for the work queue, or a changed state that requires a new plan.
import { type OperationDetails, operationDetailsOf } from '../../base/operation-details.ts'
import type { Outcome } from '../../runtime/index.ts'

export type Step =
  | Outcome
  | { readonly is: 'changed' }
  /** The driver call failed. Plan again, because the request may have changed, but do not retry this size immediately. */
  | {
      readonly is: 'failedCall'
      readonly target: string
      readonly message: string
      readonly isSlow: boolean
      readonly details?: OperationDetails
    }

export const changed: Step = Object.freeze({ is: 'changed' })

export const failedCall = (
  target: string,
  message: string,
  { isSlow = false, error }: { readonly isSlow?: boolean; readonly error?: unknown } = {},
): Step => ({
  is: 'failedCall',
  target,
  message,
  isSlow,
  details: operationDetailsOf(error),
})
