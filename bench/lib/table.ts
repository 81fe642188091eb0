// Formats figures as an aligned text table: one line each, with the target and whether it was met.
import { type Figure, type Missing, passes, peerRatioOf, ratioOf } from './figure.ts'
import type { SuiteReport } from './report.ts'
import { amount, ratioText, targetText } from './text.ts'

const HEADINGS = ['figure', 'value', 'limit', 'ratio', 'target', 'pass', 'limit measured as']
const LEFT_ALIGNED = new Set(['suite', 'figure', 'limit measured as'])

/** The figures of one suite. */
export const tableOf = (suite: SuiteReport): string => aligned([HEADINGS, ...rowsOf(suite)])

/** The figures of all suites. */
export const tableOfAll = (suites: readonly SuiteReport[]): string =>
  aligned([['suite', ...HEADINGS], ...suites.flatMap((suite) => rowsOf(suite).map((cells) => [suite.suite, ...cells]))])

const rowsOf = ({ figures, missing }: SuiteReport): string[][] => [
  ...figures.flatMap(figureRows),
  ...missing.map(missingRow),
]

/** A published figure takes the place of the limit, or has its own line if there is a limit. */
function figureRows(figure: Figure): string[][] {
  const { name, unit, value, limit, peer, target } = figure
  const pass = passes(figure)
  const compared = limit ?? peer
  const row = [
    name,
    amount(value, unit),
    compared ? amount(compared.value, unit) : '',
    ratioText(limit ? ratioOf(figure) : peerRatioOf(figure)),
    target ? targetText(target, unit) : '',
    pass === undefined ? '' : pass ? 'yes' : 'NO',
    limit?.of ?? (peer ? `published: ${peer.of}` : ''),
  ]
  if (!peer || !limit) return [row]
  const published = `published: ${peer.of}`
  return [row, [name, amount(value, unit), amount(peer.value, unit), ratioText(peerRatioOf(figure)), '', '', published]]
}

const missingRow = ({ name, message }: Missing): string[] => [name, 'not measured', '', '', '', '', message]

function aligned(rows: readonly (readonly string[])[]): string {
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
