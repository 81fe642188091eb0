// The signal that stops a process. The first SIGINT or SIGTERM stops it gracefully; another one, more than a second later,
// ends it immediately.
import { setMaxListeners } from 'node:events'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** Ctrl-C is delivered both by the terminal and by npm, so a second signal within this time is the same request. */
const SAME_REQUEST_MS = 1_000

export interface StopSignal {
  readonly signal: AbortSignal
  /** Removes the signal handlers. */
  dispose(): void
}

/** `onExit` is called with the name of the signal that ends the process immediately. */
export function createStopSignal(onExit: (name: NodeJS.Signals) => void = () => {}): StopSignal {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // every watch of every controller adds a listener
  let stoppedMs = 0
  const handleSignal = (name: NodeJS.Signals) => {
    if (stop.signal.aborted && performance.now() - stoppedMs > SAME_REQUEST_MS) {
      onExit(name)
      process.exit(130)
    }
    if (stop.signal.aborted) return
    stoppedMs = performance.now()
    stop.abort(new Error(`stopped by ${name}`))
  }
  for (const name of SIGNALS) process.on(name, handleSignal)
  return {
    signal: stop.signal,
    dispose() {
      for (const name of SIGNALS) process.off(name, handleSignal)
    },
  }
}

export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
