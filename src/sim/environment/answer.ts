// Waits for a promise while virtual time passes. For requests that bypass the network; processes wait as production code
// does.
import type { Simulation } from './simulation.ts'

const PATIENCE_MS = 60_000

export async function answerTo<T>(
  simulation: Simulation,
  promise: Promise<T>,
  waitingFor: string,
  withinMs = PATIENCE_MS,
): Promise<T> {
  let isOver = false
  const settled = () => {
    isOver = true
  }
  promise.then(settled, settled)
  await simulation.runUntil(() => isOver, { withinMs, waitingFor })
  return promise
}
