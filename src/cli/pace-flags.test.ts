import { describe, expect, it } from 'vitest'
import { parsePace } from './pace-flags.ts'

describe('the pace of changes', () => {
  it('PLUS-10 is a number of changes in a time, and a rest', () => {
    expect(parsePace({ changeBudget: '10/1m', changeCooldown: '6h' })).toEqual({
      budget: { changes: 10, periodMs: 60_000 },
      cooldownMs: 21_600_000,
    })
    expect(parsePace({ changeBudget: '5/s' })).toEqual({ budget: { changes: 5, periodMs: 1_000 }, cooldownMs: 0 })
    expect(parsePace({ changeCooldown: '30s' })).toEqual({ cooldownMs: 30_000 })
  })

  it('PLUS-10 is none where nobody says so', () => {
    expect(parsePace({})).toBeUndefined()
    expect(parsePace({ changeCooldown: '0' })).toBeUndefined()
  })

  it.each([
    [{ changeBudget: 'ten' }, '--change-budget "ten"'],
    [{ changeBudget: '0/1m' }, '--change-budget "0/1m"'],
    [{ changeBudget: '10/' }, '--change-budget "10/"'],
    [{ changeCooldown: 'long' }, '--change-cooldown "long"'],
  ])('PLUS-10 %j is refused by name', (flags, message) => {
    expect(() => parsePace(flags)).toThrow(message)
  })
})
