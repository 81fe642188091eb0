// When a process is told to stop: once is a wish to end in order, twice is an order to end now.
import { setMaxListeners } from 'node:events'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** A terminal and its npm tell the same wish twice within this. */
const SAME_WISH_MS = 1_000

export interface StopSignal {
  readonly signal: AbortSignal
  /** Listens no more. */
  forget(): void
}

/** The given signal, or else one that fires when the process is told to stop. */
export function untilToldToStop(given: AbortSignal | undefined): StopSignal {
  if (given) return { signal: given, forget: () => {} }
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  let askedMs = 0
  const ask = (name: NodeJS.Signals) => {
    if (stop.signal.aborted && performance.now() - askedMs > SAME_WISH_MS) process.exit(130)
    if (stop.signal.aborted) return
    askedMs = performance.now()
    stop.abort(new Error(`stopped by ${name}`))
  }
  for (const name of SIGNALS) process.on(name, ask)
  return {
    signal: stop.signal,
    forget() {
      for (const name of SIGNALS) process.off(name, ask)
    },
  }
}
