// One run for every moment at which somebody can die: before and after each effect, each victim.
// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone, step for step.
import { type Crash, type CrashPoint, type CrashRun, crashPointText, type Mode, VICTIMS } from './one-death.ts'

const only = process.env.CRASH_POINT

export interface EveryDeath {
  readonly effects: readonly string[]
  /** Of each crash point that did not end as it should. */
  readonly failures: readonly string[]
}

export async function everyDeath(
  run: (mode: Mode, crash?: Crash) => Promise<CrashRun>,
  mode: Mode,
): Promise<EveryDeath> {
  const { effects, end } = await run(mode)
  const points = effects.flatMap((_, index) =>
    (['before', 'after'] as const).flatMap((when) =>
      VICTIMS.map((victim): CrashPoint => ({ effect: index + 1, when, victim })),
    ),
  )
  const chosen = only ? points.filter((at) => only === crashPointText(mode, at)) : points
  const failures: string[] = []
  for (const at of chosen) {
    await run(mode, { at, expected: end }).catch((error: Error) => {
      failures.push(`${effects[at.effect - 1]}: ${error.message}`)
    })
  }
  console.log(`${mode}: ${effects.length} effects, ${chosen.length} crash points, ${failures.length} failed`)
  return { effects, failures }
}
