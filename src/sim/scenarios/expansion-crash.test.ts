// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { everyDeath } from './every-death.ts'
import { expansionCrash } from './expansion-crash.ts'
import { MODES } from './one-death.ts'

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
      const { effects, failures } = await everyDeath(expansionCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(40)
    }, 600_000)
  }
})
