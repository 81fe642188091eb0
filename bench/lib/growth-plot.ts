// Draws small plots of time by size on logarithmic axes, on which a power function is a straight line. A dashed line shows the
// limit.
import type { Figure } from './figure.ts'
import { passes } from './figure.ts'
import { escapeXml, lineHeight, textWidth, wrapText } from './svg.ts'
import { formatAmount, formatCount, targetText } from './text.ts'

const PLOT_WIDTH = 265
const FIELD = { left: 58, width: 195, height: 108 }
/** Below the field: the sizes, and the counted unit. */
const AXIS_HEIGHT = 34

interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly gap: number
}

export function drawGrowthPlots(figures: readonly Figure[], { x, y, width, gap }: Area) {
  const perRow = Math.max(1, Math.floor((width + gap) / (PLOT_WIDTH + gap)))
  const parts: string[] = []
  let top = y
  for (let firstIndex = 0; firstIndex < figures.length; firstIndex += perRow) {
    const row = figures.slice(firstIndex, firstIndex + perRow)
    const titles = row.map(titleLines)
    const fieldTop = Math.max(...titles.map(({ length }) => length)) * lineHeight('title') + lineHeight('label') + 10
    for (const [column, figure] of row.entries()) {
      const transform = `translate(${x + column * (PLOT_WIDTH + gap)} ${top})`
      parts.push(`<g transform="${transform}">`, ...drawPlot(figure, titles[column]!, fieldTop), '</g>')
    }
    top += fieldTop + FIELD.height + AXIS_HEIGHT + gap
  }
  return { parts, height: top - y }
}

const titleLines = ({ name }: Figure): string[] => wrapText(name.replace(/^growth: /, ''), 'title', PLOT_WIDTH)

function drawPlot(figure: Figure, title: readonly string[], fieldTop: number): string[] {
  const { points, of } = figure.growth!
  const idealTimes = points.map(({ size }) => points[0]!.ms * (size / points[0]!.size) ** (figure.limit?.value ?? 1))
  const [sizes, times] = [points.map(({ size }) => size), [...points.map(({ ms }) => ms), ...idealTimes]]
  const x = (size: number) => round(FIELD.left + FIELD.width * position(size, Math.min(...sizes), Math.max(...sizes)))
  const [low, high] = [Math.min(...times) / PADDING, Math.max(...times) * PADDING]
  const y = (ms: number) => round(fieldTop + FIELD.height * (1 - position(ms, low, high)))
  const path = (values: readonly number[]) =>
    values.map((ms, index) => `${index === 0 ? 'M' : 'L'}${x(sizes[index]!)} ${y(ms)}`).join(' ')
  const right = FIELD.left + FIELD.width
  const bottom = fieldTop + FIELD.height
  const exponent = `size^${formatAmount(figure.value, figure.unit)}`
  const target = figure.target ? `, target ${targetText(figure.target, figure.unit)}` : ''
  const exponentY = title.length * lineHeight('title') + lineHeight('label')
  return [
    ...title.map((line, nth) => textAt('title', 0, (nth + 1) * lineHeight('title') - 2, line)),
    textAt(passes(figure) === false ? 'bad' : 'label', 0, exponentY, exponent + target),
    `<rect class="frame" x="${FIELD.left}" y="${fieldTop}" width="${FIELD.width}" height="${FIELD.height}"/>`,
    `<path class="ideal" d="${path(idealTimes)}"/>`,
    `<path class="curve" d="${path(points.map(({ ms }) => ms))}"/>`,
    ...points.map(
      ({ size, ms }) =>
        `<circle class="dot" cx="${x(size)}" cy="${y(ms)}" r="3"><title>${escapeXml(`${formatCount(size)}: ${formatAmount(ms, 'ms')}`)}</title></circle>`,
    ),
    ...omitOverlapping(
      points.map(({ size }, index) => sizeLabel(formatCount(size), x(size), index, points.length)),
    ).map(({ text, at, anchor }) => textAt('small', at, bottom + 13, text, anchor)),
    ...omitOverlapping(points.map(({ ms }) => timeLabel(formatAmount(ms, 'ms'), y(ms) + 3))).map(({ text, at }) =>
      textAt('small', FIELD.left - 4, at, text, 'end'),
    ),
    textAt('small', right, bottom + 28, of, 'end'),
  ]
}

function textAt(textClass: string, x: number, y: number, text: string, anchor = 'start'): string {
  const anchorAttribute = anchor === 'start' ? '' : ` text-anchor="${anchor}"`
  return `<text class="${textClass}" x="${x}" y="${y}"${anchorAttribute}>${escapeXml(text)}</text>`
}

/** A label on an axis, with the range that it covers. */
interface AxisLabel {
  readonly text: string
  readonly at: number
  readonly anchor: 'start' | 'middle' | 'end'
  readonly from: number
  readonly to: number
}

function sizeLabel(text: string, at: number, index: number, length: number): AxisLabel {
  const width = textWidth(text, 'small') + 4
  const anchor = index === 0 ? 'start' : index === length - 1 ? 'end' : 'middle'
  const from = anchor === 'start' ? at : anchor === 'end' ? at - width : at - width / 2
  return { text, at, anchor, from, to: from + width }
}

const timeLabel = (text: string, at: number): AxisLabel => ({
  text,
  at,
  anchor: 'end',
  from: at - lineHeight('small'),
  to: at,
})

/** Omits labels that overlap an earlier one. The first and the last have priority. */
function omitOverlapping(labels: readonly AxisLabel[]): AxisLabel[] {
  const visibleLabels: AxisLabel[] = []
  for (const label of [...labels.slice(0, 1), ...labels.slice(1).reverse()]) {
    if (visibleLabels.every(({ from, to }) => label.to <= from || label.from >= to)) visibleLabels.push(label)
  }
  return visibleLabels
}

/** Factor above and below the extremes. */
const PADDING = 1.2

const position = (value: number, low: number, high: number): number =>
  high === low ? 0.5 : Math.log(value / low) / Math.log(high / low)

const round = (value: number): number => Math.round(value * 10) / 10
