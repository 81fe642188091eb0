// Plants each fault into the fake driver and expects its check to detect it.
import { describe, expect, it } from 'vitest'
import { verifyFake } from './fake-driver.fixture.ts'
import { PLANTED_FAULTS } from './planted-faults.fixture.ts'

const CALL_TIMEOUT_MS = 200

describe('planted faults', () => {
  it.each(PLANTED_FAULTS)('PLUS-7 $check finds: $title', async ({ check, plant, fakeSettings = {} }) => {
    const settings = { callTimeoutMs: CALL_TIMEOUT_MS, checkTimeoutMs: 20_000 }
    const { report } = await verifyFake({ only: [check], plant, fakeSettings, settings })
    const [result] = report.checks
    expect(result).toMatchObject({ id: check, status: result?.rule.level === 'must' ? 'violated' : 'advice' })
    expect(result?.message).toBeTruthy()
    if (!CHECKS_WITHOUT_CALLS.has(check)) expect(result?.calls?.length).toBeGreaterThan(0)
  })

  it('PLUS-7 include more than 25 distinct faults', () => {
    expect(new Set(PLANTED_FAULTS.map(({ title }) => title)).size).toBeGreaterThan(25)
  })
})

/** Checks that make no calls: they examine the capabilities that were read before the first check. */
const CHECKS_WITHOUT_CALLS: ReadonlySet<string> = new Set(['plugin-services', 'expand-capability-consistent'])
