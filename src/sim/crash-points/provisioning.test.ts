// Runs the provisioning scenario once per crash point. A failure message contains its crash point; to replay only that one, run
// this test with, for example, CRASH_POINT='one by one, 12 after server'.
import { describe, expect, it } from 'vitest'
import { MODES } from './crash-point.ts'
import { enumerateCrashPoints } from './enumerate-crash-points.ts'
import { runProvisioningCrash } from './provisioning.ts'

describe('provisioning with one crash at any point', () => {
  for (const mode of MODES) {
    it(`PROV-14 PROV-15 leaves only volumes that are retained or in use if no process crashes (${mode})`, async () => {
      const { end } = await runProvisioningCrash(mode)
      const volumeLine = (name: string, phase: string) =>
        expect.stringMatching(new RegExp(`^\\{"name":"${name}".*"phase":"${phase}"`))
      const GIBIBYTE = 1024 ** 3
      expect(end.split('\n')).toEqual([
        `in the driver: pvc-team-a.kept, ${GIBIBYTE} bytes`,
        `in the driver: pvc-team-a.stays, ${GIBIBYTE} bytes`,
        `in the driver: [vol-premade], ${GIBIBYTE} bytes`,
        volumeLine('premade', 'Released'),
        volumeLine('pvc-team-a.kept', 'Released'),
        volumeLine('pvc-team-a.stays', 'Bound'),
        volumeLine('stays', 'Bound'),
      ])
    })

    it(`PROV-5 PROV-12 PROV-13 reaches the same final state after a crash before or after any effect (${mode})`, async () => {
      const { effects, failures } = await enumerateCrashPoints(runProvisioningCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(50)
    }, 1_200_000)
  }

  it('SYS-14 gives the same run for the same crash point', async () => {
    const { end: expected } = await runProvisioningCrash('one by one')
    const crash = { at: { effect: 20, when: 'after', target: 'server' }, expected } as const
    const firstRun = await runProvisioningCrash('one by one', crash)
    const secondRun = await runProvisioningCrash('one by one', crash)
    expect(secondRun).toEqual(firstRun)
  })
})
