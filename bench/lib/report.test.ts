// Tests the count of targets, the JSON and the merging of reports.
import { describe, expect, it } from 'vitest'
import { aReport, aSuiteReport } from './report.fixture.ts'
import { mergeReports, reportJson, targetsOf } from './report.ts'

const metFigure = { name: 'good', unit: '/s', value: 10, target: { valueMin: 5 } } as const
const unmetFigure = { name: 'bad', unit: 'ms', value: 10, target: { valueMax: 5 } } as const
const untargetedFigure = { name: 'plain', unit: 'ms', value: 10 } as const

describe('targetsOf', () => {
  it('counts the targets, and how many of them are met', () => {
    const suites = [aSuiteReport('api', [metFigure, unmetFigure]), aSuiteReport('quota', [untargetedFigure, metFigure])]
    expect(targetsOf(suites)).toEqual({ met: 2, all: 3 })
  })
})

describe('reportJson', () => {
  it('adds the ratio and the result to each figure', () => {
    const figure = { ...metFigure, limit: { value: 20, of: 'x' }, peer: { value: 2, of: 'y' } }
    const [suite] = JSON.parse(reportJson(aReport([aSuiteReport('api', [figure])]))).suites
    expect(suite.figures[0]).toMatchObject({ name: 'good', ratio: 0.5, peerRatio: 5, pass: true })
  })
})

describe('mergeReports', () => {
  it('replaces the figures of a suite that ran again, keeps the other suites, and sorts suites in the given order', () => {
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
