import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createHealthCheck } from './health-check.ts'

function setUp() {
  const clock = manualClock()
  const checks: { complete(problem?: string): void; fail(): void }[] = []
  const check = () =>
    new Promise<string | undefined>((resolve, reject) => {
      checks.push({ complete: resolve, fail: () => reject(new Error('connection refused')) })
    })
  return { clock, checks, checkHealth: createHealthCheck({ clock, check, unresponsiveMessage: 'not responding' }) }
}

describe('createHealthCheck', () => {
  it("SYS-11 returns the check's result", async () => {
    const { clock, checks, checkHealth } = setUp()
    const healthyResult = checkHealth()
    checks[0]!.complete()
    expect(await healthyResult).toBeUndefined()
    await clock.advance(1_000)
    const unhealthyResult = checkHealth()
    checks[1]!.complete('the disk is full')
    expect(await unhealthyResult).toBe('the disk is full')
  })

  it('SYS-11 reports a check that fails or takes longer than 2 s as unresponsive', async () => {
    const { clock, checks, checkHealth } = setUp()
    const failedResult = checkHealth()
    checks[0]!.fail()
    expect(await failedResult).toBe('not responding')
    await clock.advance(1_000)
    let reportedProblem: string | undefined
    void checkHealth().then((problem) => {
      reportedProblem = problem
    })
    await clock.advance(1_999)
    expect(reportedProblem).toBeUndefined()
    await clock.advance(1)
    expect(reportedProblem).toBe('not responding')
  })

  it('shares one check among concurrent callers, and checks again after a second', async () => {
    const { clock, checks, checkHealth } = setUp()
    const concurrentResults = [checkHealth(), checkHealth()]
    checks[0]!.complete('full')
    expect(await Promise.all([...concurrentResults, checkHealth()])).toEqual(['full', 'full', 'full'])
    expect(checks).toHaveLength(1)
    await clock.advance(999)
    await checkHealth()
    expect(checks).toHaveLength(1)
    await clock.advance(1)
    void checkHealth()
    expect(checks).toHaveLength(2)
  })
})
