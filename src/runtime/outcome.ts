// The outcome of a reconcile: done, to be retried, or stuck until its key is added again.
import type { OperationDetails } from '../base/operation-details.ts'

export type Outcome =
  | { readonly is: 'done' }
  | {
      readonly is: 'retry'
      /** Without it, the key is retried after its backoff. */
      readonly afterMs?: number
      readonly message: string
      readonly details?: OperationDetails
      /** Set if there is no work left and the key is only checked again. Such a key is not listed as an operation. */
      readonly isRoutine?: boolean
    }
  /** The key is not retried until it is added again. */
  | { readonly is: 'stuck'; readonly message: string; readonly details?: OperationDetails }

export const done: Outcome = Object.freeze({ is: 'done' })

export const retryAfter = (afterMs: number, message: string, details?: OperationDetails): Outcome => ({
  is: 'retry',
  afterMs,
  message,
  ...(details ? { details } : {}),
})

/** Returns the outcome of a reconcile without work until a later time, for example until a token must be renewed. */
export const checkAfter = (afterMs: number, message: string): Outcome => ({
  is: 'retry',
  afterMs,
  message,
  isRoutine: true,
})

export const backOff = (message: string, details?: OperationDetails): Outcome => ({
  is: 'retry',
  message,
  ...(details ? { details } : {}),
})

export const stuck = (message: string, details?: OperationDetails): Outcome => ({
  is: 'stuck',
  message,
  ...(details ? { details } : {}),
})
