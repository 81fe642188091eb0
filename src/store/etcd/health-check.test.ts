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
  it('SYS-11 returns the result of the check', async () => {
    const { clock, checks, checkHealth } = setUp()
    const healthy = checkHealth()
    checks[0]!.complete()
    expect(await healthy).toBeUndefined()
    await clock.advance(1_000)
    const unhealthy = checkHealth()
    checks[1]!.complete('the disk is full')
    expect(await unhealthy).toBe('the disk is full')
  })

  it('SYS-11 reports a check that fails or takes longer than 2 s as unresponsive', async () => {
    const { clock, checks, checkHealth } = setUp()
    const failed = checkHealth()
    checks[0]!.fail()
    expect(await failed).toBe('not responding')
    await clock.advance(1_000)
    let reported: string | undefined
    void checkHealth().then((problem) => {
      reported = problem
    })
    await clock.advance(1_999)
    expect(reported).toBeUndefined()
    await clock.advance(1)
    expect(reported).toBe('not responding')
  })

  it('shares one check among concurrent callers, and checks again after a second', async () => {
    const { clock, checks, checkHealth } = setUp()
    const concurrent = [checkHealth(), checkHealth()]
    checks[0]!.complete('full')
    expect(await Promise.all([...concurrent, checkHealth()])).toEqual(['full', 'full', 'full'])
    expect(checks).toHaveLength(1)
    await clock.advance(999)
    await checkHealth()
    expect(checks).toHaveLength(1)
    await clock.advance(1)
    void checkHealth()
    expect(checks).toHaveLength(2)
  })
})
