// Tests the count of targets, the JSON and the merging of reports.
import { describe, expect, it } from 'vitest'
import { aReport, aSuiteReport } from './report.fixture.ts'
import { mergeReports, reportJson, targetsOf } from './report.ts'

const metFigure = { name: 'good', unit: '/s', value: 10, target: { valueMin: 5 } } as const
const unmetFigure = { name: 'bad', unit: 'ms', value: 10, target: { valueMax: 5 } } as const
const untargetedFigure = { name: 'plain', unit: 'ms', value: 10 } as const

describe('a report', () => {
  it('counts its targets and how many of them are met', () => {
    expect(
      targetsOf([aSuiteReport('api', [metFigure, unmetFigure]), aSuiteReport('quota', [untargetedFigure, metFigure])]),
    ).toEqual({
      met: 2,
      all: 3,
    })
  })

  it('as JSON has the ratio and the result of each figure', () => {
    const figure = { ...metFigure, limit: { value: 20, of: 'x' }, peer: { value: 2, of: 'y' } }
    const [suite] = JSON.parse(reportJson(aReport([aSuiteReport('api', [figure])]))).suites
    expect(suite.figures[0]).toMatchObject({ name: 'good', ratio: 0.5, peerRatio: 5, pass: true })
  })

  it('of one suite replaces the earlier figures of that suite, in the given order', () => {
    const earlierReport = aReport([aSuiteReport('api', [unmetFigure]), aSuiteReport('quota', [untargetedFigure])])
    const mergedReport = mergeReports(earlierReport, aReport([aSuiteReport('api', [metFigure])]), [
      'quota',
      'api',
      'pods',
    ])
    expect(mergedReport.suites.map(({ suite }) => suite)).toEqual(['quota', 'api'])
    expect(mergedReport.suites[1]?.figures).toEqual([metFigure])
  })
})
