// Clock and Random: sources of time and randomness that callers pass in, so that a simulation can be reproduced from a seed.

export interface Clock {
  /** Milliseconds since the Unix epoch. May jump: use it for timestamps, not to measure durations. */
  nowMs(): number
  /** Milliseconds since an arbitrary fixed point. Never decreases. */
  monotonicMs(): number
  /** Resolves after `ms`. Rejects with the signal's reason if the signal is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `run` once after `ms`; the returned function cancels it. Does not keep the process alive. */
  after(ms: number, run: () => void): () => void
  /** Yields to the event loop: long computations call it so that I/O and timers can run. */
  nextTurn(): Promise<void>
}

/** A number in [0, 1). */
export type Random = () => number

/**
 * Computations that wait for nextTurn continue in order, one per turn of the event loop, so that many of them together delay
 * other work as little as one.
 */
export function systemClock(): Clock {
  const waitingContinuations: (() => void)[] = []
  const continueFirst = () => {
    const continuation = waitingContinuations.shift()!
    if (waitingContinuations.length > 0) setImmediate(continueFirst) // in the next turn
    continuation()
  }
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const timer = setTimeout(() => {
          signal?.removeEventListener('abort', abort)
          resolve()
        }, ms)
        const abort = () => {
          clearTimeout(timer)
          reject(signal?.reason)
        }
        signal?.addEventListener('abort', abort, { once: true })
      }),
    after: (ms, run) => {
      const timer = setTimeout(run, ms)
      timer.unref()
      return () => {
        timer.ref() // otherwise Node.js keeps an entry for the delay of the timer until it would have fired
        clearTimeout(timer)
      }
    },
    nextTurn: () =>
      new Promise((resolve) => {
        waitingContinuations.push(resolve)
        if (waitingContinuations.length === 1) setImmediate(continueFirst)
      }),
  }
}

export const systemRandom = (): Random => Math.random
