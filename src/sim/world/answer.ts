// Waits for a promise while virtual time passes. For requests that bypass the network; processes wait as production code
// does.
import type { World } from './world.ts'

const PATIENCE_MS = 60_000

export async function answerTo<T>(
  world: World,
  asked: Promise<T>,
  waitingFor: string,
  withinMs = PATIENCE_MS,
): Promise<T> {
  let isOver = false
  const settled = () => {
    isOver = true
  }
  asked.then(settled, settled)
  await world.runUntil(() => isOver, { withinMs, waitingFor })
  return asked
}
