// Runs the expansion scenario once per crash point. A failure message contains its crash point; to replay only that one, run this
// test with, for example, CRASH_POINT='one by one, 12 after server'.
import { describe, expect, it } from 'vitest'
import { MODES } from './crash-point.ts'
import { enumerateCrashPoints } from './enumerate-crash-points.ts'
import { runExpansionCrash } from './expansion.ts'

describe('expansion with one crash at any point', () => {
  for (const mode of MODES) {
    it(`REX-5 REX-8 gives every claim its size or a reason if no process crashes (${mode})`, async () => {
      const { end } = await runExpansionCrash(mode)
      const driverVolumes = end.split('\n').filter((line) => line.startsWith('in the driver'))
      expect(driverVolumes).toEqual([
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

    it(`REX-8 reaches the same final state after a crash before or after any effect (${mode})`, async () => {
      const { effects, failures } = await enumerateCrashPoints(runExpansionCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(40)
    }, 1_200_000)
  }
})
