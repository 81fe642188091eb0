// Measures how many calls concurrent callers complete. Each caller repeats a call for a given time.

export interface CallersOptions {
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export interface Calls {
  readonly count: number
  readonly seconds: number
}

/** Runs the callers. The first call that completes after the warm-up starts the clock and is not counted. */
export async function runCallers(options: CallersOptions, call: () => Promise<unknown>): Promise<Calls> {
  const startMs = performance.now() + options.warmUpMs
  const endMs = startMs + options.measureMs
  let firstMs = 0
  let lastMs = 0
  let count = 0

  async function repeatCall(): Promise<void> {
    for (;;) {
      await call()
      const nowMs = performance.now()
      if (nowMs < startMs) continue
      if (nowMs >= endMs && count > 0) return
      if (firstMs === 0) firstMs = nowMs
      else count++
      lastMs = nowMs
    }
  }
  await Promise.all(Array.from({ length: options.callers }, repeatCall))
  return { count, seconds: (lastMs - firstMs) / 1000 }
}

export const callsPerSecond = ({ count, seconds }: Calls): number => count / seconds
