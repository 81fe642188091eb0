// Runs a crash scenario once for every crash point: before and after each effect, for each target.
// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone.
import { type Crash, type CrashPoint, type CrashRun, formatCrashPoint, type Mode, TARGETS } from './crash-point.ts'

const selectedPoint = process.env.CRASH_POINT

export interface Enumeration {
  readonly effects: readonly string[]
  /** One message per crash point whose run failed. */
  readonly failures: readonly string[]
}

export async function enumerateCrashPoints(
  run: (mode: Mode, crash?: Crash) => Promise<CrashRun>,
  mode: Mode,
): Promise<Enumeration> {
  const { effects, end } = await run(mode)
  const points = effects.flatMap((_, index) =>
    (['before', 'after'] as const).flatMap((when) =>
      TARGETS.map((target): CrashPoint => ({ effect: index + 1, when, target })),
    ),
  )
  const selectedPoints = selectedPoint
    ? points.filter((point) => selectedPoint === formatCrashPoint(mode, point))
    : points
  const failures: string[] = []
  for (const point of selectedPoints) {
    await run(mode, { at: point, expected: end }).catch((error: Error) => {
      failures.push(`${effects[point.effect - 1]}: ${error.message}`)
    })
  }
  console.log(`${mode}: ${effects.length} effects, ${selectedPoints.length} crash points, ${failures.length} failed`)
  return { effects, failures }
}
