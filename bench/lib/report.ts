// The report of a benchmark run: formats it as JSON, counts the targets that are met, and merges it with an earlier report.
// table.ts formats its figures as text, and docs.ts writes it to the docs.
import { type Figure, type MissingFigure, passes, peerRatioOf, ratioOf } from './figure.ts'

export interface Report {
  readonly machine: Machine
  readonly seconds: number
  readonly suites: readonly SuiteReport[]
}

interface Machine {
  readonly cores: number
  readonly processor: string
  readonly node: string
  readonly system: string
}

export interface SuiteReport {
  readonly suite: string
  readonly parts: readonly PartTime[]
  readonly figures: readonly Figure[]
  readonly missing: readonly MissingFigure[]
  readonly notes: readonly string[]
}

export interface PartTime {
  readonly part: string
  readonly seconds: number
}

/** Returns the report as JSON, with the ratio and the result of each figure. */
export const reportJson = (report: Report): string =>
  `${JSON.stringify({ ...report, suites: report.suites.map(addResults) }, null, 2)}\n`

const addResults = (suite: SuiteReport) => ({
  ...suite,
  figures: suite.figures.map((figure) => ({
    ...figure,
    ratio: ratioOf(figure),
    peerRatio: peerRatioOf(figure),
    pass: passes(figure),
  })),
})

export const secondsOf = ({ parts }: SuiteReport): number => parts.reduce((sum, { seconds }) => sum + seconds, 0)

/** Returns the number of all targets, and of the targets that are met. */
export function targetsOf(suites: readonly SuiteReport[]): { readonly met: number; readonly all: number } {
  const results = suites.flatMap(({ figures }) => figures.map(passes)).filter((pass) => pass !== undefined)
  return { met: results.filter((pass) => pass).length, all: results.length }
}

/** Merges two reports. Suites of the later run replace those of the earlier one; the others stay. */
export function mergeReports(earlierReport: Report | undefined, laterReport: Report, order: readonly string[]): Report {
  const suites = new Map([...(earlierReport?.suites ?? []), ...laterReport.suites].map((suite) => [suite.suite, suite]))
  return { ...laterReport, suites: order.flatMap((name) => suites.get(name) ?? []) }
}
