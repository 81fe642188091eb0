// Runs the modification scenario once per crash point. A failure message contains its crash point; to replay only that one, run
// this test with, for example, CRASH_POINT='one by one, 12 after server'.
import { describe, expect, it } from 'vitest'
import { MODES } from './crash-point.ts'
import { enumerateCrashPoints } from './enumerate-crash-points.ts'
import { runModificationCrash } from './modification.ts'

describe('modification with one crash at any point', () => {
  for (const mode of MODES) {
    it(`VAC-5 VAC-6 VAC-7 gives every claim its attributes or a reason if no process crashes (${mode})`, async () => {
      const { end, events } = await runModificationCrash(mode)
      const lines = end.split('\n')
      const volumesWithAmounts = [
        'in the driver: vol-all, 3Gi, iops 1000 throughput 30 tier silver',
        'in the driver: vol-both, 1Gi, iops 700 throughput 20 tier bronze',
        'in the driver: vol-fast, 1Gi, iops 500 throughput 10 tier silver',
      ]
      expect(lines.filter((line) => line.startsWith('in the driver'))).toEqual([
        ...(mode === 'transactions' ? volumesWithAmounts : []),
        'in the driver: vol-larger, 3Gi, iops 1000 tier silver',
        'in the driver: vol-patient, 1Gi, iops 300 tier late',
        'in the driver: vol-plain, 1Gi, iops 1000 tier silver',
        'in the driver: vol-refused, 1Gi, iops 500 tier silver',
        'in the driver: vol-stubborn, 1Gi, iops 500 tier silver',
        'in the driver: vol-undone, 1Gi, iops 500 tier silver',
      ])
      expect(end.match(/"status":"(Pending|InProgress|Infeasible)"/g)).toEqual(['"status":"Infeasible"'])
      expect(end).toContain(`quota gold-only: {"persistentvolumeclaims":"${mode === 'transactions' ? 3 : 2}"}`)
      // Events are sent concurrently, so their order is not defined.
      const reasons = (name: string) => events[name]?.map((text) => text.split(':')[0]).sort()
      expect(reasons('plain')).toEqual(['VolumeModify', 'VolumeModifyFailed', 'VolumeModifySuccessful'])
      expect(reasons('refused')).toEqual(['VolumeModify', 'VolumeModifyCanceled', 'VolumeModifyFailed'])
      expect(reasons('stubborn')).toEqual(['VolumeModify', 'VolumeModifyFailed'])
      expect(events.patient).toEqual([
        'VolumeModifyFailed: VAC "late" does not exist.',
        'VolumeModify: external resizer is modifying volume patient with vac late',
        'VolumeModifySuccessful: external resizer modified volume patient with vac late successfully',
      ])
    })

    it(`VAC-7 PIO-4 PLUS-10 reaches the same final state after a crash before or after any effect (${mode})`, async () => {
      const { effects, failures } = await enumerateCrashPoints(runModificationCrash, mode)
      expect(failures[0] ?? '').toBe('')
      expect(effects.length).toBeGreaterThan(30)
    }, 1_200_000)
  }
})
