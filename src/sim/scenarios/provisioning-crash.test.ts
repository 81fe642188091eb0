// A failure names its crash point: CRASH_POINT='one by one, 12 after server' replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { everyDeath } from './every-death.ts'
import { MODES } from './one-death.ts'
import { provisioningCrash } from './provisioning-crash.ts'

describe('claims that become volumes, with one death at any moment', () => {
  for (const mode of MODES) {
    it(`PROV-14 PROV-15 undisturbed, only what should stay is left (${mode})`, async () => {
      const { end } = await provisioningCrash(mode)
      const volume = (name: string, phase: string) =>
        expect.stringMatching(new RegExp(`^\\{"name":"${name}".*"phase":"${phase}"`))
      const bytes = 1024 ** 3
      expect(end.split('\n')).toEqual([
        `in the driver: pvc-default.kept, ${bytes} bytes`,
        `in the driver: pvc-default.stays, ${bytes} bytes`,
        `in the driver: [vol-premade], ${bytes} bytes`,
        volume('premade', 'Released'),
        volume('pvc-default.kept', 'Released'),
        volume('pvc-default.stays', 'Bound'),
        volume('stays', 'Bound'),
      ])
    })

    it(`PROV-5 PROV-12 PROV-13 whoever dies right before or right after any effect, the end is the same (${mode})`, async () => {
      const { effects, failures } = await everyDeath(provisioningCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(50)
    }, 600_000)
  }

  it('SYS-14 the same crash gives the same run, effect for effect', async () => {
    const { end } = await provisioningCrash('one by one')
    const crash = { at: { effect: 20, when: 'after', victim: 'server' }, expected: end } as const
    const [first, second] = [await provisioningCrash('one by one', crash), await provisioningCrash('one by one', crash)]
    expect(second).toEqual(first)
  })
})
