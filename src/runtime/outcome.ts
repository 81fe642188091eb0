// How a reconcile ends: done, retry later, or stuck until something changes. The work queue keeps the reason. A reconcile that
// throws is retried with backoff.

export type Outcome =
  | { readonly is: 'done' }
  /** Without `afterMs`: after the backoff of the key, which grows with every try. */
  | { readonly is: 'retry'; readonly afterMs?: number; readonly because: string }
  /** Not retried until the key is added again. */
  | { readonly is: 'stuck'; readonly because: string }

export const done: Outcome = Object.freeze({ is: 'done' })

export const retryAfter = (afterMs: number, because: string): Outcome => ({ is: 'retry', afterMs, because })

export const backOff = (because: string): Outcome => ({ is: 'retry', because })

export const stuck = (because: string): Outcome => ({ is: 'stuck', because })
