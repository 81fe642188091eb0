import { describe, expect, it } from 'vitest'
import { createHealth, type Health } from './health.ts'

const ask = async (health: Health, url: string) => {
  const [path = '', query = ''] = url.split('?')
  const answer = await health.handle(path, new URLSearchParams(query))
  return answer && `${answer.status} ${Buffer.from(answer.body!).toString()}`
}

describe('health', () => {
  it.each(['/healthz', '/livez', '/readyz', '/readyz/', '/livez/ping'])('SYS-11 %s returns ok', async (path) => {
    expect(await ask(createHealth(), path)).toBe('200 ok')
  })

  it('SYS-11 is alive before it is ready, and names the failing checks', async () => {
    const health = createHealth()
    const store = health.addReadiness('store')
    expect(await ask(health, '/livez')).toBe('200 ok')
    expect(await ask(health, '/readyz')).toBe('503 [+]ping ok\n[-]store failed: not done yet\nreadyz check failed\n')
    expect(await ask(health, '/readyz?exclude=store')).toBe('200 ok')
    expect(await ask(health, '/readyz/store')).toMatch(/^503 /)
    store.ok()
    expect(await ask(health, '/readyz?verbose')).toBe('200 [+]ping ok\n[+]store ok\nreadyz check passed\n')
    store.failed('the disk is full')
    expect(await ask(health, '/healthz')).toMatch(/^503 .*\[-\]store failed: the disk is full/s)
  })

  it('SYS-11 runs checks on every request unless excluded, and never for liveness', async () => {
    const health = createHealth()
    let asked = 0
    let problem: string | undefined
    health.addCheck('etcd', async () => {
      asked++
      return problem
    })
    expect(await ask(health, '/readyz')).toBe('200 ok')
    problem = 'not responding'
    expect(await ask(health, '/readyz')).toBe('503 [+]ping ok\n[-]etcd failed: not responding\nreadyz check failed\n')
    expect(asked).toBe(2)
    expect(await ask(health, '/livez')).toBe('200 ok')
    expect(await ask(health, '/readyz?exclude=etcd')).toBe('200 ok')
    expect(asked).toBe(2)
    problem = undefined
    expect(await ask(health, '/readyz/etcd')).toBe('200 ok')
  })

  it('does not handle other paths and unknown checks', async () => {
    expect(await ask(createHealth(), '/readyz/unicorns')).toBeUndefined()
    expect(await ask(createHealth(), '/health')).toBeUndefined()
  })
})
