import { expect, it } from 'vitest'
import { compareReports } from './compare-reports.ts'
import type { Unit } from './figure.ts'
import { aReport, aSuiteReport } from './report.fixture.ts'

const report = (value: number | undefined, unit: Unit = 'ms', name = 'bind') =>
  aReport([aSuiteReport('api', value === undefined ? [] : [{ name, unit, value }])])
const compare = (pairs: readonly (readonly [number | undefined, number | undefined])[], unit: Unit = 'ms') =>
  compareReports(pairs.map(([before, after]) => ({ before: report(before, unit), after: report(after, unit) })))

it("compareReports returns the median and the range of the rounds' ratios", () => {
  expect(
    compare([
      [100, 50],
      [200, 180],
      [100, 60],
    ]),
  ).toEqual([
    {
      suite: 'api',
      name: 'bind',
      unit: 'ms',
      before: 100,
      after: 60,
      ratio: 0.6,
      ratioMin: 0.5,
      ratioMax: 0.9,
      change: 'better',
    },
  ])
})

it.each<[string, Unit, readonly (readonly [number, number])[], string]>([
  ['a higher rate is better', '/s', [[100, 150]], 'better'],
  ['a lower rate is worse', '/s', [[100, 50]], 'worse'],
  ['more memory is worse', 'MB', [[100, 150]], 'worse'],
  ['two percent is no change', 'ms', [[100, 101.9]], 'same'],
  [
    'the result of rounds that disagree is unclear',
    'ms',
    [
      [100, 120],
      [100, 90],
      [100, 150],
    ],
    'unclear',
  ],
])('compareReports finds that %s', (_, unit, pairs, change) => {
  expect(compare(pairs, unit)).toMatchObject([{ change }])
})

it('compareReports omits a figure that a build did not measure, or measured as 0, in one of the rounds', () => {
  expect(
    compare([
      [100, 50],
      [undefined, 50],
    ]),
  ).toEqual([])
  expect(compare([[0, 50]])).toEqual([])
  expect(compareReports([])).toEqual([])
})
