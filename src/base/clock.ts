// Time and chance as values that are handed in. Only main.ts and sim/ make real or simulated ones;
// everything else takes a Clock and a Random, so that one seed replays a whole cluster.

export interface Clock {
  /** Milliseconds since the epoch. May jump: use it for timestamps, never to measure a duration. */
  nowMs(): number
  /** Milliseconds from some fixed point; never goes back. */
  monotonicMs(): number
  /** Settles after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void
  /** Settles when everything that is ready has had its turn: long work stops here to let others in. */
  nextTurn(): Promise<void>
}

/** A number in [0, 1). */
export type Random = () => number

export function systemClock(): Clock {
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
      return () => clearTimeout(timer)
    },
    nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

export const systemRandom = (): Random => Math.random
