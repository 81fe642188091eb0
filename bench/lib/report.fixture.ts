// Builders of reports for tests.
import type { Figure } from './figure.ts'
import type { Report, SuiteReport } from './report.ts'

export const aSuiteReport = (suite: string, figures: readonly Figure[] = []): SuiteReport => ({
  suite,
  figures,
  parts: [{ part: 'all', seconds: 12 }],
  missing: [],
  notes: [],
})

export const aReport = (suites: readonly SuiteReport[]): Report => ({
  machine: { cores: 2, processor: 'a processor', node: 'v20.20.0', system: 'Linux 6' },
  seconds: 12,
  suites,
})
