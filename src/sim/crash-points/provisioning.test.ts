// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone.
import { describe, expect, it } from 'vitest'
import { MODES } from './crash-point.ts'
import { enumerateCrashPoints } from './enumerate.ts'
import { provisioningCrash } from './provisioning.ts'

describe('provisioning with one crash at any point', () => {
  for (const mode of MODES) {
    it(`PROV-14 PROV-15 without a crash, leaves only volumes that are retained or in use (${mode})`, async () => {
      const { end } = await provisioningCrash(mode)
      const volume = (name: string, phase: string) =>
        expect.stringMatching(new RegExp(`^\\{"name":"${name}".*"phase":"${phase}"`))
      const bytes = 1024 ** 3
      expect(end.split('\n')).toEqual([
        `in the driver: pvc-team-a.kept, ${bytes} bytes`,
        `in the driver: pvc-team-a.stays, ${bytes} bytes`,
        `in the driver: [vol-premade], ${bytes} bytes`,
        volume('premade', 'Released'),
        volume('pvc-team-a.kept', 'Released'),
        volume('pvc-team-a.stays', 'Bound'),
        volume('stays', 'Bound'),
      ])
    })

    it(`PROV-5 PROV-12 PROV-13 reaches the same final state after a crash before or after any effect (${mode})`, async () => {
      const { effects, failures } = await enumerateCrashPoints(provisioningCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(50)
    }, 1_200_000)
  }

  it('SYS-14 gives the same run for the same crash point', async () => {
    const { end } = await provisioningCrash('one by one')
    const crash = { at: { effect: 20, when: 'after', target: 'server' }, expected: end } as const
    const [first, second] = [await provisioningCrash('one by one', crash), await provisioningCrash('one by one', crash)]
    expect(second).toEqual(first)
  })
})
