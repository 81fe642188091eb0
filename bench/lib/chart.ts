// Draws the figures of a suite as an SVG for light and dark pages: bars that compare each figure with its target, its limit
// and published figures, and a small plot of how each cost grows with the amount of work. The layout follows the estimated
// width of the text (svg.ts): labels are not cut off and do not overlap.
import { type Figure, passes, peerRatioOf, ratioOf } from './figure.ts'
import { drawGrowthPlots } from './growth-plot.ts'
import type { SuiteReport } from './report.ts'
import { escapeXml, lineHeight, STYLE, type TextClass, textWidth, wrapText } from './svg.ts'
import { formatAmount, ratioText, targetText } from './text.ts'

const WIDTH_MIN = 860
const MARGIN = 16
const LABEL_WIDTH = 400
const BAR_WIDTH = 260
const BAR_HEIGHT = 12
const ROW_PADDING = 6
const TITLE_HEIGHT = 30
const GAP = 14

interface Bar {
  readonly label: string
  /** Names the value that the figure is compared with, if the title does not. */
  readonly comparedWith?: string | undefined
  /** A bar with share 1 reaches the line. */
  readonly share: number
  readonly text: string
  readonly colour: 'good' | 'bad' | 'plain'
}

interface BarGroup {
  readonly title: string
  /** Position of the line, as a share of the maximum bar length. Bars that exceed the maximum end in an arrow. */
  readonly lineAt: number
  readonly bars: readonly Bar[]
}

export function drawChart({ suite, figures }: SuiteReport): string {
  const groups = [compareWithTargets(figures), compareWithLimits(figures), compareWithPublished(figures)].filter(
    ({ bars }) => bars.length > 0,
  )
  const valueWidth = Math.max(0, ...groups.flatMap(({ bars }) => bars.map(({ text }) => textWidth(text, 'value'))))
  const width = Math.max(WIDTH_MIN, Math.ceil(MARGIN + LABEL_WIDTH + BAR_WIDTH + GAP + valueWidth + MARGIN))
  const parts: string[] = []
  let y = MARGIN
  for (const group of groups) {
    const drawnGroup = drawBars(group, y)
    parts.push(...drawnGroup.parts)
    y += drawnGroup.height + MARGIN
  }
  const plots = drawGrowthPlots(
    figures.filter(({ growth }) => growth),
    { x: MARGIN, y, width: width - 2 * MARGIN, gap: MARGIN },
  )
  parts.push(...plots.parts)
  y += plots.height
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="Figures of ${escapeXml(suite)}">`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${y}" rx="6"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

/** Returns how far a figure reaches its target: 1 is the target; a rate twice as high, or a time half as long, is 2. */
export function computeAttainment(figure: Figure): number | undefined {
  const { target, value } = figure
  if (!target) return undefined
  if ('ratioMin' in target) return (ratioOf(figure) ?? 0) / target.ratioMin
  return 'valueMin' in target ? value / target.valueMin : target.valueMax / value
}

const compareWithTargets = (figures: readonly Figure[]): BarGroup => ({
  title: 'Compared with the target (line)',
  lineAt: 1 / 3,
  bars: figures.flatMap((figure): Bar[] => {
    const share = computeAttainment(figure)
    if (share === undefined || !figure.target || figure.growth) return []
    const isRatio = 'ratioMin' in figure.target
    const value = isRatio ? ratioText(ratioOf(figure)) : formatAmount(figure.value, figure.unit)
    const text = `${value}, target ${targetText(figure.target, figure.unit)}`
    const comparedWith = isRatio ? figure.limit?.of : undefined
    return [{ label: figure.name, comparedWith, share, text, colour: passes(figure) ? 'good' : 'bad' }]
  }),
})

const compareWithLimits = (figures: readonly Figure[]): BarGroup => ({
  title: 'Compared with the limit (line)',
  lineAt: 2 / 3,
  bars: figures.flatMap((figure): Bar[] => {
    const share = ratioOf(figure)
    if (share === undefined || !figure.limit || (figure.target && 'ratioMin' in figure.target)) return []
    const text = `${ratioText(share)} of ${formatAmount(figure.limit.value, figure.unit)}`
    return [{ label: figure.name, comparedWith: figure.limit.of, share, text, colour: 'plain' }]
  }),
})

const compareWithPublished = (figures: readonly Figure[]): BarGroup => ({
  title: 'Compared with published figures (line), logarithmic',
  lineAt: 1 / 6,
  bars: figures.flatMap((figure): Bar[] => {
    const ratio = peerRatioOf(figure)
    if (ratio === undefined || !figure.peer) return []
    const share = Math.max(0.1, 1 + 2 * Math.log10(ratio))
    const text = `${ratioText(ratio)} of ${formatAmount(figure.peer.value, figure.unit)}`
    return [{ label: figure.name, comparedWith: figure.peer.of, share, text, colour: 'plain' }]
  }),
})

function drawBars({ title, lineAt, bars }: BarGroup, top: number): { parts: string[]; height: number } {
  const left = MARGIN + LABEL_WIDTH
  const firstY = top + TITLE_HEIGHT
  let y = firstY
  const rows = bars.flatMap((bar) => {
    const lines = labelLines(bar)
    const height = lines.reduce((sum, { textClass }) => sum + lineHeight(textClass), 0)
    const row = [...drawLabel(lines, left - GAP, y), ...drawBar(bar, { left, middle: y + height / 2, lineAt })]
    y += height + ROW_PADDING
    return row
  })
  const lineX = round(left + BAR_WIDTH * lineAt)
  return {
    parts: [
      `<text class="title" x="${MARGIN}" y="${top + 16}">${escapeXml(title)}</text>`,
      ...rows,
      `<line class="mark" x1="${lineX}" y1="${firstY - 2}" x2="${lineX}" y2="${y - ROW_PADDING / 2}"/>`,
    ],
    height: y - top,
  }
}

interface LabelLine {
  readonly text: string
  readonly textClass: TextClass
}

function labelLines({ label, comparedWith }: Bar): LabelLine[] {
  const linesOf = (text: string, textClass: TextClass) =>
    wrapText(text, textClass, LABEL_WIDTH - GAP).map((line) => ({ text: line, textClass }))
  return [...linesOf(label, 'label'), ...(comparedWith ? linesOf(comparedWith, 'small') : [])]
}

function drawLabel(lines: readonly LabelLine[], right: number, top: number): string[] {
  let y = top
  return lines.map(({ text, textClass }) => {
    y += lineHeight(textClass)
    return `<text class="${textClass}" x="${right}" y="${y - 3}" text-anchor="end">${escapeXml(text)}</text>`
  })
}

interface BarPlace {
  readonly left: number
  readonly middle: number
  readonly lineAt: number
}

function drawBar({ share, text, colour }: Bar, { left, middle, lineAt }: BarPlace): string[] {
  const fullLength = share * lineAt * BAR_WIDTH
  const length = round(Math.max(1, Math.min(BAR_WIDTH, fullLength)))
  const end = left + BAR_WIDTH
  return [
    `<rect class="${colour}" x="${left}" y="${round(middle - BAR_HEIGHT / 2)}" width="${length}" height="${BAR_HEIGHT}"/>`,
    ...(fullLength > BAR_WIDTH ? [`<path class="${colour}" d="M${end} ${round(middle - 6)} l8 6 l-8 6 z"/>`] : []),
    `<text class="value" x="${end + GAP}" y="${round(middle + 4)}">${escapeXml(text)}</text>`,
  ]
}

const round = (value: number): number => Math.round(value * 10) / 10
