// What a run of the benchmarks found, as it is printed, saved and shown in the documents.
import { type Figure, type Missing, passes, peerRatioOf, ratioOf } from './figure.ts'

export interface Report {
  readonly machine: Machine
  readonly seconds: number
  readonly suites: readonly SuiteReport[]
}

export interface Machine {
  readonly cores: number
  readonly processor: string
  readonly node: string
  readonly system: string
}

export interface SuiteReport {
  readonly suite: string
  readonly parts: readonly PartTime[]
  readonly figures: readonly Figure[]
  readonly missing: readonly Missing[]
  readonly notes: readonly string[]
}

export interface PartTime {
  readonly part: string
  readonly seconds: number
}

/** For programs: with what follows from each figure spelled out. */
export const reportJson = (report: Report): string =>
  `${JSON.stringify({ ...report, suites: report.suites.map(withVerdicts) }, null, 2)}\n`

const withVerdicts = (suite: SuiteReport) => ({
  ...suite,
  figures: suite.figures.map((figure) => ({
    ...figure,
    ratio: ratioOf(figure),
    peerRatio: peerRatioOf(figure),
    pass: passes(figure),
  })),
})

export const secondsOf = ({ parts }: SuiteReport): number => parts.reduce((sum, { seconds }) => sum + seconds, 0)

/** How many targets there are, and how many were met. */
export function targetsOf(suites: readonly SuiteReport[]): { readonly met: number; readonly all: number } {
  const verdicts = suites.flatMap(({ figures }) => figures.map(passes)).filter((pass) => pass !== undefined)
  return { met: verdicts.filter((pass) => pass).length, all: verdicts.length }
}

/** Suites of a later run take the place of those of an earlier one; the others stay. */
export function mergeReports(earlier: Report | undefined, later: Report, order: readonly string[]): Report {
  const suites = new Map([...(earlier?.suites ?? []), ...later.suites].map((suite) => [suite.suite, suite]))
  return { ...later, suites: order.flatMap((name) => suites.get(name) ?? []) }
}
