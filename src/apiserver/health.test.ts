import { describe, expect, it } from 'vitest'
import { createHealth, type Health } from './health.ts'

const ask = (health: Health, url: string) => {
  const [path = '', query = ''] = url.split('?')
  const answer = health.answer(path, new URLSearchParams(query))
  return answer && `${answer.status} ${Buffer.from(answer.body!).toString()}`
}

describe('health', () => {
  it.each(['/healthz', '/livez', '/readyz', '/readyz/', '/livez/ping'])('SYS-11 %s says ok', (path) => {
    expect(ask(createHealth(), path)).toBe('200 ok')
  })

  it('SYS-11 is alive before it is ready, and says what it waits for', () => {
    const health = createHealth()
    const store = health.addReadiness('store')
    expect(health.ready).toBe(false)
    expect(ask(health, '/livez')).toBe('200 ok')
    expect(ask(health, '/readyz')).toBe('503 [+]ping ok\n[-]store failed: not done yet\nreadyz check failed\n')
    expect(ask(health, '/readyz?exclude=store')).toBe('200 ok')
    expect(ask(health, '/readyz/store')).toMatch(/^503 /)
    store.ok()
    expect(health.ready).toBe(true)
    expect(ask(health, '/readyz?verbose')).toBe('200 [+]ping ok\n[+]store ok\nreadyz check passed\n')
    store.failed('the disk is full')
    expect(ask(health, '/healthz')).toMatch(/^503 .*\[-\]store failed: the disk is full/s)
  })

  it('knows no other path and no other check', () => {
    expect(ask(createHealth(), '/readyz/unicorns')).toBeUndefined()
    expect(ask(createHealth(), '/health')).toBeUndefined()
  })
})
