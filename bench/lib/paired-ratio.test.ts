import { expect, it } from 'vitest'
import { compareRounds, ratioText } from './paired-ratio.ts'

const rounds = (ratios: readonly number[]) =>
  ratios.map((ratio, index) => ({ value: ratio * (index + 1), reference: index + 1 }))

it('compareRounds returns the median ratio of the rounds, regardless of their order and of one disturbed round', () => {
  expect(compareRounds(rounds([1.02, 9, 1.01, 1.03, 1])).median).toBeCloseTo(1.02)
  expect(compareRounds(rounds([1.04, 1, 1.02, 9])).median).toBeCloseTo(1.03)
})

// The second and the ninth of 10 values bound the median with a probability of 97.9 %, the sixth and the fifteenth of 20 with
// 95.9 %.
it.each([
  [6, 1, 6],
  [10, 2, 9],
  [20, 6, 15],
])(
  'compareRounds bounds the median of %d rounds by the ranks of the binomial distribution',
  (count, lowRank, highRank) => {
    const { low, high } = compareRounds(rounds(Array.from({ length: count }, (_, index) => index + 1)))
    expect([low, high]).toEqual([lowRank, highRank])
  },
)

it('compareRounds returns no bounds for fewer than six rounds', () => {
  expect(compareRounds(rounds([1, 1, 1, 1, 1]))).toMatchObject({ low: Number.NaN, high: Number.NaN })
})

it('compareRounds includes the costs of single rounds in the ratio of the sums', () => {
  const values = [10, 10, 10, 10, 10, 40].map((value) => ({ value, reference: 10 }))
  expect(compareRounds(values)).toMatchObject({ median: 1, total: 1.5 })
  expect(ratioText(compareRounds(values))).toBe('+0.0 % (95 %: +0.0 to +300.0 %; of the sums: +50.0 %)')
})
