// Tests the computation of growth exponents.
import { describe, expect, it } from 'vitest'
import { passes } from './figure.ts'
import { estimateExponent, toTotalGrowthFigure, toUnitGrowthFigure } from './growth.ts'

const points = (time: (size: number) => number) => [250, 1_000, 4_000].map((size) => ({ size, ms: time(size) }))

describe('the growth exponent', () => {
  it('is 1 if twice the work takes twice the time', () => {
    expect(estimateExponent(points((size) => 3 * size))).toBeCloseTo(1)
  })

  it('is 2 if twice the work takes four times the time, and 0 if it takes the same time', () => {
    expect(estimateExponent(points((size) => size ** 2 / 7))).toBeCloseTo(2)
    expect(estimateExponent(points(() => 12))).toBeCloseTo(0)
  })

  it('is below 1 with a fixed cost', () => {
    expect(estimateExponent(points((size) => 500 + size))).toBeLessThan(0.9)
  })

  it('changes little if one point is 10 % off', () => {
    const [small, middle, large] = points((size) => size)
    expect(estimateExponent([small!, middle!, { ...large!, ms: large!.ms * 1.1 }])).toBeCloseTo(1.03, 1)
    expect(estimateExponent([small!, { ...middle!, ms: middle!.ms * 1.1 }, large!])).toBeCloseTo(1)
  })

  it('passes for linear growth, and fails if it is 1.3', () => {
    const growth = (exponent: number) =>
      toTotalGrowthFigure('lists', { of: 'claims', points: points((size) => size ** exponent) })
    expect(passes(growth(1))).toBe(true)
    expect(passes(growth(1.3))).toBe(false)
  })

  it('of the time per operation passes only if the time is almost constant', () => {
    const growth = (exponent: number) =>
      toUnitGrowthFigure('one', { of: 'claims', points: points((size) => size ** exponent) })
    expect(passes(growth(0.05))).toBe(true)
    expect(passes(growth(0.5))).toBe(false)
  })

  it('lists the measured points', () => {
    const figure = toTotalGrowthFigure('lists', { of: 'claims', points: points((size) => size / 2) })
    expect(figure.limit?.of).toBe('linear in claims: 250 in 125 ms, 1,000 in 500 ms, 4,000 in 2,000 ms')
  })
})
