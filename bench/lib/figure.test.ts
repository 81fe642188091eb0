// Tests the ratios, targets and medians of figures.
import { describe, expect, it } from 'vitest'
import { type Figure, medianOf, passes, peerRatioOf, ratioOf } from './figure.ts'

const rate: Figure = { name: 'creates', unit: '/s', value: 500, limit: { value: 1_000, of: 'the echo' } }
const time: Figure = { name: 'a list', unit: 'ms', value: 50, limit: { value: 10, of: 'the echo' } }

describe('a figure', () => {
  it('has a ratio to its limit, inverted for times', () => {
    expect(ratioOf(rate)).toBe(0.5)
    expect(ratioOf(time)).toBe(0.2)
  })

  it('has a ratio to a published figure', () => {
    expect(peerRatioOf({ ...rate, peer: { value: 30, of: 'a peer' } })).toBeCloseTo(16.67)
    expect(peerRatioOf({ ...time, peer: { value: 500, of: 'a peer' } })).toBe(10)
    expect(peerRatioOf(rate)).toBeUndefined()
  })

  it('has no ratio if it has no limit or is an exponent', () => {
    expect(ratioOf({ name: 'x', unit: '/s', value: 1 })).toBeUndefined()
    expect(ratioOf({ name: 'x', unit: 'exponent', value: 1.1, limit: { value: 1, of: 'linear' } })).toBeUndefined()
  })

  it('passes if its target is met exactly, and has no result without one', () => {
    expect(passes(rate)).toBeUndefined()
    expect(passes({ ...rate, target: { ratioMin: 0.5 } })).toBe(true)
    expect(passes({ ...rate, target: { ratioMin: 0.51 } })).toBe(false)
    expect(passes({ ...rate, target: { valueMin: 500 } })).toBe(true)
    expect(passes({ ...rate, target: { valueMin: 501 } })).toBe(false)
    expect(passes({ ...time, target: { valueMax: 50 } })).toBe(true)
    expect(passes({ ...time, target: { valueMax: 49 } })).toBe(false)
  })
})

describe('medianOf', () => {
  it('returns the middle value, or the mean of the middle two', () => {
    expect(medianOf([9, 1, 5])).toBe(5)
    expect(medianOf([1, 3])).toBe(2)
  })
})
