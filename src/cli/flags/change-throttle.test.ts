import { describe, expect, it } from 'vitest'
import { parseChangeThrottle } from './change-throttle.ts'

describe('parseChangeThrottle', () => {
  it('PLUS-10 parses a number of changes per period, and a duration', () => {
    expect(parseChangeThrottle({ changeBudget: '10/1m', changeCooldown: '6h' })).toEqual({
      budget: { changes: 10, periodMs: 60_000 },
      cooldownMs: 21_600_000,
    })
    expect(parseChangeThrottle({ changeBudget: '5/s' })).toEqual({
      budget: { changes: 5, periodMs: 1_000 },
      cooldownMs: 0,
    })
    expect(parseChangeThrottle({ changeCooldown: '30s' })).toEqual({ cooldownMs: 30_000 })
  })

  it('PLUS-10 returns undefined by default', () => {
    expect(parseChangeThrottle({})).toBeUndefined()
    expect(parseChangeThrottle({ changeCooldown: '0' })).toBeUndefined()
  })

  it.each([
    [{ changeBudget: 'ten' }, '--change-budget "ten"'],
    [{ changeBudget: '0/1m' }, '--change-budget "0/1m"'],
    [{ changeBudget: '10/' }, '--change-budget "10/"'],
    [{ changeCooldown: 'long' }, '--change-cooldown "long"'],
  ])('PLUS-10 rejects %j with the flag and its value', (flags, message) => {
    expect(() => parseChangeThrottle(flags)).toThrow(message)
  })
})
