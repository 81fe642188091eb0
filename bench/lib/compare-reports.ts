// Compares the figures of two builds that were measured in turns. Each round has a report of each build; the ratios of
// the rounds show how much of a difference is noise.
import { type Figure, medianOf, type Unit } from './figure.ts'
import type { Report } from './report.ts'

export interface Round {
  readonly before: Report
  readonly after: Report
}

export interface ComparedFigure {
  readonly suite: string
  readonly name: string
  readonly unit: Unit
  /** Medians over the rounds. */
  readonly before: number
  readonly after: number
  /** Median, minimum and maximum over the rounds of the value after divided by the value before. */
  readonly ratio: number
  readonly ratioMin: number
  readonly ratioMax: number
  readonly change: Change
}

/** `unclear`: rounds disagree about the direction. */
export type Change = 'better' | 'worse' | 'same' | 'unclear'

/** A median ratio within this distance of 1 counts as equal. */
const EQUAL_WITHIN = 0.02

/** Returns the figures that both builds measured in every round, in the order of the last report. */
export function compareReports(rounds: readonly Round[]): ComparedFigure[] {
  const last = rounds.at(-1)
  if (!last) return []
  return last.after.suites.flatMap(({ suite, figures }) =>
    figures.flatMap(({ name, unit }): ComparedFigure[] => {
      const pairs = rounds.map(({ before, after }) => [findValue(before, suite, name), findValue(after, suite, name)])
      if (!pairs.every(isMeasured)) return []
      const ratios = pairs.map(([before, after]) => after / before)
      return [
        {
          suite,
          name,
          unit,
          before: medianOf(pairs.map(([before]) => before)),
          after: medianOf(pairs.map(([, after]) => after)),
          ratio: medianOf(ratios),
          ratioMin: Math.min(...ratios),
          ratioMax: Math.max(...ratios),
          change: describeChange(ratios, unit),
        },
      ]
    }),
  )
}

const findValue = ({ suites }: Report, suite: string, name: string): number | undefined =>
  suites.find((report) => report.suite === suite)?.figures.find((figure: Figure) => figure.name === name)?.value

const isMeasured = (pair: readonly (number | undefined)[]): pair is [number, number] =>
  pair.every((value) => value !== undefined && value > 0)

function describeChange(ratios: readonly number[], unit: Unit): Change {
  const improvements = unit === '/s' ? ratios : ratios.map((ratio) => 1 / ratio)
  if (Math.abs(medianOf(improvements) - 1) <= EQUAL_WITHIN) return 'same'
  if (improvements.every((ratio) => ratio > 1)) return 'better'
  return improvements.every((ratio) => ratio < 1) ? 'worse' : 'unclear'
}
