// Prints figures for people: one line each, aligned, with the target and whether it was met.
import { type Figure, passes, ratioOf, type Target } from './figure.ts'

const HEADINGS = ['figure', 'value', 'limit', 'ratio', 'target', 'pass', 'limit is']
const LEFT_ALIGNED = new Set([0, 6])

export function tableOf(figures: readonly Figure[]): string {
  const rows = [HEADINGS, ...figures.map(rowOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return LEFT_ALIGNED.has(column) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}

function rowOf(figure: Figure): string[] {
  const { name, unit, value, limit, target } = figure
  const pass = passes(figure)
  return [
    name,
    amount(value, unit),
    limit ? amount(limit.value, unit) : '',
    percent(ratioOf(figure)),
    target ? wanted(target, unit) : '',
    pass === undefined ? '' : pass ? 'yes' : 'NO',
    limit?.of ?? '',
  ]
}

function wanted(target: Target, unit: Figure['unit']): string {
  if ('ratioMin' in target) return `≥ ${percent(target.ratioMin)}`
  return 'valueMin' in target ? `≥ ${amount(target.valueMin, unit)}` : `≤ ${amount(target.valueMax, unit)}`
}

const percent = (ratio: number | undefined): string => (ratio === undefined ? '' : `${Math.round(ratio * 100)} %`)

function amount(value: number, unit: Figure['unit']): string {
  const digits = value >= 100 ? 0 : 1
  const number = value.toLocaleString('en', { maximumFractionDigits: digits })
  return unit === '/s' ? `${number}/s` : `${number} ${unit}`
}
