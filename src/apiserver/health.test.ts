import { describe, expect, it } from 'vitest'
import { createHealth, type Health } from './health.ts'

const check = async (health: Health, url: string) => {
  const [path = '', query = ''] = url.split('?')
  const response = await health.handle(path, new URLSearchParams(query))
  return response && `${response.status} ${Buffer.from(response.body!).toString()}`
}

describe('health', () => {
  it.each(['/healthz', '/livez', '/readyz', '/readyz/', '/livez/ping'])('SYS-11 %s returns ok', async (path) => {
    expect(await check(createHealth(), path)).toBe('200 ok')
  })

  it('SYS-11 reports the server as live before it is ready, and names the failing checks', async () => {
    const health = createHealth()
    const store = health.addReadiness('store')
    expect(await check(health, '/livez')).toBe('200 ok')
    expect(await check(health, '/readyz')).toBe('503 [+]ping ok\n[-]store failed: not done yet\nreadyz check failed\n')
    expect(await check(health, '/readyz?exclude=store')).toBe('200 ok')
    expect(await check(health, '/readyz/store')).toMatch(/^503 /)
    store.ok()
    expect(await check(health, '/readyz?verbose')).toBe('200 [+]ping ok\n[+]store ok\nreadyz check passed\n')
    store.fail('the disk is full')
    expect(await check(health, '/healthz')).toMatch(/^503 .*\[-\]store failed: the disk is full/s)
  })

  it('SYS-11 runs checks on every readiness request unless excluded, but never for liveness', async () => {
    const health = createHealth()
    let checkRuns = 0
    let problem: string | undefined
    health.addCheck('etcd', async () => {
      checkRuns++
      return problem
    })
    expect(await check(health, '/readyz')).toBe('200 ok')
    problem = 'not responding'
    expect(await check(health, '/readyz')).toBe('503 [+]ping ok\n[-]etcd failed: not responding\nreadyz check failed\n')
    expect(checkRuns).toBe(2)
    expect(await check(health, '/livez')).toBe('200 ok')
    expect(await check(health, '/readyz?exclude=etcd')).toBe('200 ok')
    expect(checkRuns).toBe(2)
    problem = undefined
    expect(await check(health, '/readyz/etcd')).toBe('200 ok')
  })

  it('does not handle other paths or unknown checks', async () => {
    expect(await check(createHealth(), '/readyz/unicorns')).toBeUndefined()
    expect(await check(createHealth(), '/health')).toBeUndefined()
  })
})
