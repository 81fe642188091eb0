// The outcome of a reconcile: done, to be retried, or stuck until an object changes. The work queue stores the reason. A
// reconcile that throws is retried with backoff.

export type Outcome =
  | { readonly is: 'done' }
  /** Without `afterMs`, the key is retried after its backoff, which grows with every attempt. */
  | { readonly is: 'retry'; readonly afterMs?: number; readonly because: string }
  /** The key is not retried until it is added again. */
  | { readonly is: 'stuck'; readonly because: string }

export const done: Outcome = Object.freeze({ is: 'done' })

export const retryAfter = (afterMs: number, because: string): Outcome => ({ is: 'retry', afterMs, because })

export const backOff = (because: string): Outcome => ({ is: 'retry', because })

export const stuck = (because: string): Outcome => ({ is: 'stuck', because })
