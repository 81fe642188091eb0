// How a reconcile ends, short of surprise: done, again later, or stuck until something changes. The reason is kept by
// the work queue and is what events, `why` and the console show. A throw means surprise and backs off.

export type Outcome =
  | { readonly is: 'done' }
  /** Without `afterMs`: after the key's own backoff, which grows with every try. */
  | { readonly is: 'retry'; readonly afterMs?: number; readonly because: string }
  /** Nothing is tried until an event about the key comes. */
  | { readonly is: 'stuck'; readonly because: string }

export const done: Outcome = Object.freeze({ is: 'done' })

export const retryAfter = (afterMs: number, because: string): Outcome => ({ is: 'retry', afterMs, because })

export const backOff = (because: string): Outcome => ({ is: 'retry', because })

export const stuck = (because: string): Outcome => ({ is: 'stuck', because })
