// Draws the figures of a suite as an SVG that reads on light and on dark pages: bars of how each figure stands to its
// target, to its limit and to what is published, and a small plot for each growth of cost with the work.
import { type Figure, passes, peerRatioOf, ratioOf } from './figure.ts'
import { growthPlot, PLOT } from './growth-plot.ts'
import type { SuiteReport } from './report.ts'
import { escapeXml, STYLE } from './svg.ts'
import { amount, ratioText, targetText } from './text.ts'

const WIDTH = 860
const MARGIN = 16
const LABEL_WIDTH = 400
const BAR_WIDTH = 260
const ROW_HEIGHT = 20
const TITLE_HEIGHT = 30
const PLOTS_PER_LINE = 3

interface Bar {
  readonly label: string
  /** Of the length that `one` stands for. */
  readonly share: number
  readonly text: string
  readonly look: 'good' | 'bad' | 'plain'
}

interface Bars {
  readonly title: string
  /** Where the mark for 1 is, as a share of the longest bar. Longer bars end in an arrow. */
  readonly oneAt: number
  readonly bars: readonly Bar[]
}

export function chartOf({ suite, figures }: SuiteReport): string {
  const groups = [againstTargets(figures), ofLimits(figures), againstPublished(figures)]
  const parts: string[] = []
  let y = MARGIN
  for (const group of groups) {
    if (group.bars.length === 0) continue
    parts.push(...drawBars(group, y))
    y += TITLE_HEIGHT + group.bars.length * ROW_HEIGHT + MARGIN
  }
  const grown = figures.filter(({ growth }) => growth)
  for (const [index, figure] of grown.entries()) {
    const [column, line] = [index % PLOTS_PER_LINE, Math.floor(index / PLOTS_PER_LINE)]
    parts.push(growthPlot(figure, { x: MARGIN + column * (PLOT.width + MARGIN), y: y + line * (PLOT.height + MARGIN) }))
  }
  y += Math.ceil(grown.length / PLOTS_PER_LINE) * (PLOT.height + MARGIN)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="Figures of ${escapeXml(suite)}">`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${WIDTH}" height="${y}" rx="6"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

/** 1 is the target: a rate twice as high, or a time half as long, is 2. */
export function attainment(figure: Figure): number | undefined {
  const { target, value } = figure
  if (!target) return undefined
  if ('ratioMin' in target) return (ratioOf(figure) ?? 0) / target.ratioMin
  return 'valueMin' in target ? value / target.valueMin : target.valueMax / value
}

const againstTargets = (figures: readonly Figure[]): Bars => ({
  title: 'Against the target (the line)',
  oneAt: 1 / 3,
  bars: figures.flatMap((figure): Bar[] => {
    const share = attainment(figure)
    if (share === undefined || figure.growth) return []
    const isRatio = 'ratioMin' in figure.target!
    const value = isRatio ? ratioText(ratioOf(figure)) : amount(figure.value, figure.unit)
    const text = `${value}, ${targetText(figure.target!, figure.unit)}`
    return [{ label: figure.name, share, text, look: passes(figure) ? 'good' : 'bad' }]
  }),
})

const ofLimits = (figures: readonly Figure[]): Bars => ({
  title: 'Share of the limit (the line)',
  oneAt: 2 / 3,
  bars: figures.flatMap((figure): Bar[] => {
    const share = ratioOf(figure)
    if (share === undefined || (figure.target && 'ratioMin' in figure.target)) return []
    const text = `${ratioText(share)} of ${amount(figure.limit!.value, figure.unit)}`
    return [{ label: `${figure.name} / ${figure.limit!.of}`, share, text, look: 'plain' }]
  }),
})

const againstPublished = (figures: readonly Figure[]): Bars => ({
  title: 'Against what is published (the line), by powers of ten',
  oneAt: 1 / 6,
  bars: figures.flatMap((figure): Bar[] => {
    const ratio = peerRatioOf(figure)
    if (ratio === undefined) return []
    const share = Math.max(0.1, 1 + 2 * Math.log10(ratio))
    const text = `${ratioText(ratio)} of ${amount(figure.peer!.value, figure.unit)}`
    return [{ label: `${figure.name} / ${figure.peer!.of}`, share, text, look: 'plain' }]
  }),
})

function drawBars({ title, oneAt, bars }: Bars, top: number): string[] {
  const left = MARGIN + LABEL_WIDTH
  const lineX = left + BAR_WIDTH * oneAt
  const first = top + TITLE_HEIGHT
  const rows = bars.flatMap(({ label, share, text, look }, index) => {
    const y = first + index * ROW_HEIGHT
    const wanted = share * oneAt * BAR_WIDTH
    const length = Math.max(1, Math.min(BAR_WIDTH, wanted))
    const arrow = wanted > BAR_WIDTH ? arrowAt(left + BAR_WIDTH, y + ROW_HEIGHT / 2 - 1, look) : []
    return [
      `<text class="label" x="${left - 8}" y="${y + 13}" text-anchor="end">${escapeXml(shortened(label))}<title>${escapeXml(label)}</title></text>`,
      `<rect class="${look}" x="${left}" y="${y + 3}" width="${round(length)}" height="${ROW_HEIGHT - 8}"/>`,
      ...arrow,
      `<text class="value" x="${left + BAR_WIDTH + 14}" y="${y + 13}">${escapeXml(text)}</text>`,
    ]
  })
  const bottom = first + bars.length * ROW_HEIGHT
  return [
    `<text class="title" x="${MARGIN}" y="${top + 16}">${escapeXml(title)}</text>`,
    ...rows,
    `<line class="mark" x1="${round(lineX)}" y1="${first - 2}" x2="${round(lineX)}" y2="${bottom}"/>`,
  ]
}

const arrowAt = (x: number, y: number, look: Bar['look']): string[] => [
  `<path class="${look}" d="M${x} ${y - 6} l8 6 l-8 6 z"/>`,
]

const LABEL_LENGTH_MAX = 62

const shortened = (label: string): string =>
  label.length <= LABEL_LENGTH_MAX ? label : `${label.slice(0, LABEL_LENGTH_MAX - 1)}…`

const round = (value: number): number => Math.round(value * 10) / 10
