// What a promise comes to, with the world's time passing until it does. For requests exemptions the network: whoever asks over
// the network waits as production code does.
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
