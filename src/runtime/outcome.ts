// The outcome of a reconcile: done, to be retried, or stuck until its key is added again.

export type Outcome =
  | { readonly is: 'done' }
  /** Without `afterMs`, the key is retried after its backoff. */
  | { readonly is: 'retry'; readonly afterMs?: number; readonly message: string }
  /** The key is not retried until it is added again. */
  | { readonly is: 'stuck'; readonly message: string }

export const done: Outcome = Object.freeze({ is: 'done' })

export const retryAfter = (afterMs: number, message: string): Outcome => ({ is: 'retry', afterMs, message })

export const backOff = (message: string): Outcome => ({ is: 'retry', message })

export const stuck = (message: string): Outcome => ({ is: 'stuck', message })
