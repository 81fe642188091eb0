// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { expansionCrash, MODES } from './expansion-crash.ts'
import { type CrashPoint, VICTIMS } from './provisioning-crash.ts'

const only = process.env.CRASH_POINT

describe('claims that grow, with one death at any moment', () => {
  for (const mode of MODES) {
    it(`REX-5 REX-8 undisturbed, every claim has its size or says why not (${mode})`, async () => {
      const { end } = await expansionCrash(mode)
      const held = end.split('\n').filter((line) => line.startsWith('in the driver'))
      expect(held).toEqual([
        'in the driver: vol-again, 2Gi, file system 2Gi',
        'in the driver: vol-brave, 2Gi, file system 2Gi',
        'in the driver: vol-plain, 3Gi, file system 3Gi',
        'in the driver: vol-slow, 6Gi, file system 6Gi',
        'in the driver: vol-timid, 1Gi, file system 1Gi',
        'in the driver: vol-twice, 5Gi, file system 5Gi',
      ])
      expect(end.match(/ControllerResizeInfeasible/g)).toHaveLength(1)
      expect(end).toMatch(/"name":"again".*"60Gi".*ControllerResizeInfeasible/)
    })

    it(`REX-8 whoever dies right before or right after any effect, the end is the same (${mode})`, async () => {
      const { effects, end } = await expansionCrash(mode)
      const points = effects.flatMap((_, index) =>
        (['before', 'after'] as const).flatMap((when) =>
          VICTIMS.map((victim): CrashPoint => ({ effect: index + 1, when, victim })),
        ),
      )
      const chosen = only
        ? points.filter(({ effect, when, victim }) => only === `${mode}, ${effect} ${when} ${victim}`)
        : points
      const failures: string[] = []
      for (const at of chosen) {
        await expansionCrash(mode, { at, expected: end }).catch((error: Error) => {
          failures.push(`${effects[at.effect - 1]}: ${error.message}`)
        })
      }
      console.log(`${mode}: ${effects.length} effects, ${chosen.length} crash points, ${failures.length} failed`)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(40)
    }, 600_000)
  }
})
