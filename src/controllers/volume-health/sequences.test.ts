// Random sequences of damage, repair, driver errors and restarts of the health monitor. Whenever the monitor has had time to read
// the condition of the volume, the last event on the claim states it.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createHealthFixture, LIST_INTERVAL_MS } from './volume-health.fixture.ts'

/** Number of sequences. `npm run prove` runs more. */
const SEQUENCES = Number(process.env.HEALTH_SEQUENCES ?? 8)

type Step =
  | { readonly do: 'damage'; readonly message: string }
  | { readonly do: 'repair' | 'restart' | 'fail the next call' }
  | { readonly do: 'wait'; readonly ms: number }

const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('damage' as const), message: fc.constantFrom('disk 3 is broken', 'no route to disk 3') }),
  fc.record({ do: fc.constantFrom('repair' as const, 'restart' as const, 'fail the next call' as const) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1_000, 60_000, LIST_INTERVAL_MS) }),
)

for (const method of ['ListVolumes', 'ControllerGetVolume'] as const) {
  it(`the health monitor reports a volume's condition after any sequence of changes, failed ${method} calls and restarts`, async () => {
    const sequence = fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 8 }), async (steps) => {
      const fixture = await createHealthFixture(method === 'ListVolumes' ? 'LIST_VOLUMES' : 'GET_VOLUME')
      const volume = await fixture.createBoundClaim('orders')
      let monitor = await fixture.start()
      for (const step of steps) {
        if (step.do === 'damage') volume.condition = { abnormal: true, message: step.message }
        if (step.do === 'repair') delete volume.condition
        if (step.do === 'fail the next call')
          fixture.fake.script.setRules([{ method, times: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } }])
        if (step.do === 'wait') await fixture.advance(step.ms)
        if (step.do === 'restart') {
          await monitor.stop()
          await fixture.advance(1_000) // events have a resolution of one second
          monitor = await fixture.start()
        }
      }
      fixture.fake.script.setRules([])
      await fixture.advance(2 * LIST_INTERVAL_MS)
      const lastEvent = (await fixture.eventsByTime()).at(-1)
      if (volume.condition) expect(lastEvent).toBe(`Warning VolumeConditionAbnormal: ${volume.condition.message}`)
      else if (lastEvent) expect(lastEvent).toMatch(/^Normal VolumeConditionNormal: /)
      expect(await fixture.abnormalVolumes()).toBe(volume.condition ? 1 : 0)
      await monitor.stop()
    })
    await fc.assert(sequence, { numRuns: SEQUENCES })
  })
}
