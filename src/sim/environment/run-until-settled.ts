// Waits for a promise while virtual time passes. For requests that bypass the network; processes wait as production code
// does.
import type { Simulation } from './simulation.ts'

const DEFAULT_WITHIN_MS = 60_000

export async function runUntilSettled<T>(
  simulation: Simulation,
  promise: Promise<T>,
  waitingFor: string,
  withinMs = DEFAULT_WITHIN_MS,
): Promise<T> {
  let isSettled = false
  const markSettled = () => {
    isSettled = true
  }
  promise.then(markSettled, markSettled)
  await simulation.runUntil(() => isSettled, { withinMs, waitingFor })
  return promise
}
