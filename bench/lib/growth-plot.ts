// A small plot of time by size, both as logarithms, so that a power is a straight line; dashed, what the limit would be.
import type { Figure } from './figure.ts'
import { passes } from './figure.ts'
import { escapeXml } from './svg.ts'
import { amount, count, targetText } from './text.ts'

export const PLOT = { width: 265, height: 190 }
const FIELD = { left: 58, top: 44, width: 195, height: 108 }

export function growthPlot(figure: Figure, at: { readonly x: number; readonly y: number }): string {
  const points = figure.growth!.points
  const ideal = points.map(({ size }) => points[0]!.ms * (size / points[0]!.size) ** (figure.limit?.value ?? 1))
  const [sizes, times] = [points.map(({ size }) => size), [...points.map(({ ms }) => ms), ...ideal]]
  const x = (size: number) => FIELD.left + FIELD.width * between(size, Math.min(...sizes), Math.max(...sizes))
  const y = (ms: number) =>
    FIELD.top + FIELD.height * (1 - between(ms, Math.min(...times) / ROOM, Math.max(...times) * ROOM))
  const path = (values: readonly number[]) =>
    values.map((ms, index) => `${index === 0 ? 'M' : 'L'}${round(x(sizes[index]!))} ${round(y(ms))}`).join(' ')
  const verdict = passes(figure) === false ? 'bad' : 'label'
  return [
    `<g transform="translate(${at.x} ${at.y})">`,
    `<text class="title" x="0" y="14">${escapeXml(figure.name.replace(/^growth: /, ''))}</text>`,
    `<text class="${verdict}" x="0" y="31">size^${amount(figure.value, figure.unit)}${figure.target ? `, ${targetText(figure.target, figure.unit)}` : ''}</text>`,
    `<rect class="frame" x="${FIELD.left}" y="${FIELD.top}" width="${FIELD.width}" height="${FIELD.height}"/>`,
    `<path class="ideal" d="${path(ideal)}"/>`,
    `<path class="curve" d="${path(points.map(({ ms }) => ms))}"/>`,
    ...points.flatMap(({ size, ms }, index) => [
      `<circle class="dot" cx="${round(x(size))}" cy="${round(y(ms))}" r="3"><title>${escapeXml(`${count(size)}: ${amount(ms, 'ms')}`)}</title></circle>`,
      `<text class="small" x="${round(x(size))}" y="${FIELD.top + FIELD.height + 14}" text-anchor="${anchorOf(index, points.length)}">${count(size)}</text>`,
    ]),
    ...apart(points.map(({ ms }) => ({ y: round(y(ms) + 3), text: amount(ms, 'ms') }))).map(
      ({ y, text }) => `<text class="small" x="${FIELD.left - 4}" y="${y}" text-anchor="end">${text}</text>`,
    ),
    `<text class="small" x="${FIELD.left + FIELD.width}" y="${FIELD.top + FIELD.height + 28}" text-anchor="end">${escapeXml(figure.growth!.of)}</text>`,
    '</g>',
  ].join('\n')
}

interface Label {
  readonly y: number
  readonly text: string
}

/** Labels that would lie on another are left out. */
function apart(labels: readonly Label[]): Label[] {
  const kept: Label[] = []
  for (const label of labels) if (!kept.some(({ y }) => Math.abs(y - label.y) < LABEL_HEIGHT)) kept.push(label)
  return kept
}
const LABEL_HEIGHT = 11

/** Above and below the extremes. */
const ROOM = 1.2

const between = (value: number, low: number, high: number): number =>
  high === low ? 0.5 : Math.log(value / low) / Math.log(high / low)

const anchorOf = (index: number, length: number): string =>
  index === 0 ? 'start' : index === length - 1 ? 'end' : 'middle'

const round = (value: number): number => Math.round(value * 10) / 10
