// The end of a scenario whose faults are over: everything comes to rest, and then nothing is wrong.
import type { Court } from '../checkers/conviction.ts'
import type { World } from '../world.ts'

export interface Rest {
  readonly court: Court
  /** What is wrong as it is now. Asked only when something has happened since. */
  problems(): string[]
  /** A number that is another one after everything that happens. */
  happened(): number
  /** When something last changed that lasts. */
  changedMs(): number
}

const MINUTE_MS = 60_000
const HEAL_MS_MAX = 60 * MINUTE_MS
/** After this long without a change, what is wrong stays wrong: no retry is further away. */
const STILL_MS = 15 * MINUTE_MS

/** Until all is well; or until nothing moves any more, and it is not. */
export async function untilQuiet(world: World, { court, problems, happened, changedMs }: Rest): Promise<void> {
  let looked = -1
  let found = ['not looked yet']
  const isOver = () => {
    const seen = happened()
    if (seen === looked) return found.length === 0 || world.nowMs - changedMs() > STILL_MS
    looked = seen
    found = problems()
    return found.length === 0
  }
  await world.runUntil(isOver, { withinMs: HEAL_MS_MAX, waitingFor: 'quiet' }).catch((error: Error) => {
    court.convict(`never quiet: ${error.message.split('\n')[0]}`)
  })
  for (const problem of problems()) court.convict(problem)
  court.adjourn()
}
