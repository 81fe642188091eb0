import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { parseTimeoutMs, withTimeout } from './request-timeout.ts'

describe('parseTimeoutMs', () => {
  const parse = (timeout: string) => parseTimeoutMs(new URLSearchParams({ timeout }))

  it.each([
    ['32s', 32_000],
    ['1m', 60_000],
    ['0.5m10s', 40_000],
    ['.5s', 500],
    ['100ms', 100],
    ['10us', 0.01],
    ['10µs', 0.01],
    ['+1s', 1_000],
  ])('parses "%s"', (timeout, ms) => {
    expect(parse(timeout)).toBeCloseTo(ms)
  })

  it('returns at most 60 s', () => {
    expect(parse('1.5h')).toBe(60_000)
  })

  it.each(['', '0', '0s', '-1s'])('returns undefined for "%s"', (timeout) => {
    expect(parse(timeout)).toBeUndefined()
  })

  it.each(['invalid', '30', 's', '1d', '1s ', '1 s', '1.s.', 'Infinity', '0x1s'])('SYS-10 rejects "%s"', (timeout) => {
    expect(() => parse(timeout)).toThrow(expect.objectContaining({ code: 400, reason: 'BadRequest' }))
  })
})

describe('withTimeout', () => {
  it('rejects with 504 if there is no result in time', async () => {
    const clock = manualClock()
    const result = withTimeout(new Promise(() => {}), 5_000, clock).catch((error) => error)
    await clock.advance(5_000)
    expect(await result).toMatchObject({ code: 504, reason: 'Timeout' })
  })

  it('SYS-19 passes a result that arrives after the timeout to discard', async () => {
    const clock = manualClock()
    const discardedResults: string[] = []
    let resolve = (_: string) => {}
    const latePromise = new Promise<string>((resolveLate) => (resolve = resolveLate))
    const result = withTimeout(latePromise, 5_000, clock, (value) => discardedResults.push(value)).catch(
      (error) => error,
    )
    await clock.advance(5_000)
    expect(await result).toMatchObject({ code: 504 })
    resolve('late')
    await clock.nextTurn()
    expect(discardedResults).toEqual(['late'])
  })

  it('returns a result or an error that arrives in time, and leaves no timer', async () => {
    const timers = new Set<() => void>()
    const clock = {
      ...manualClock(),
      after: (_ms: number, run: () => void) => {
        timers.add(run)
        return () => void timers.delete(run)
      },
    }
    expect(await withTimeout(Promise.resolve('result'), 5_000, clock)).toBe('result')
    await expect(withTimeout(Promise.reject(new Error('failed')), 5_000, clock)).rejects.toThrow('failed')
    expect(timers.size).toBe(0)
  })
})
