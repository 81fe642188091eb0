// Formats figures as an aligned text table.
import { type Figure, type MissingFigure, passes, peerRatioOf, ratioOf } from './figure.ts'
import type { SuiteReport } from './report.ts'
import { formatAmount, ratioText, targetText } from './text.ts'

const HEADINGS = ['figure', 'value', 'limit', 'ratio', 'target', 'pass', 'limit measured as']
const LEFT_ALIGNED = new Set(['suite', 'figure', 'limit measured as', 'change'])

/** Formats the figures of one suite. */
export const formatTable = (suite: SuiteReport): string => alignColumns([HEADINGS, ...listRows(suite)])

/** Formats the figures of all suites. */
export const formatTables = (suites: readonly SuiteReport[]): string =>
  alignColumns([
    ['suite', ...HEADINGS],
    ...suites.flatMap((suite) => listRows(suite).map((cells) => [suite.suite, ...cells])),
  ])

const listRows = ({ figures, missing }: SuiteReport): string[][] => [
  ...figures.flatMap(figureRows),
  ...missing.map(missingRow),
]

/** A published figure takes the place of the limit, or has its own line if there is a limit. */
function figureRows(figure: Figure): string[][] {
  const { name, unit, value, limit, peer, target } = figure
  const pass = passes(figure)
  const comparison = limit ?? peer
  const row = [
    name,
    formatAmount(value, unit),
    comparison ? formatAmount(comparison.value, unit) : '',
    ratioText(limit ? ratioOf(figure) : peerRatioOf(figure)),
    target ? targetText(target, unit) : '',
    pass === undefined ? '' : pass ? 'yes' : 'NO',
    limit?.of ?? (peer ? `published: ${peer.of}` : ''),
  ]
  if (!peer || !limit) return [row]
  const publishedText = `published: ${peer.of}`
  return [
    row,
    [
      name,
      formatAmount(value, unit),
      formatAmount(peer.value, unit),
      ratioText(peerRatioOf(figure)),
      '',
      '',
      publishedText,
    ],
  ]
}

const missingRow = ({ name, message }: MissingFigure): string[] => [name, 'not measured', '', '', '', '', message]

/** Pads the cells of each column to the same width. The first row has the headings. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const headings = rows[0]!
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return LEFT_ALIGNED.has(headings[column]!) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}
