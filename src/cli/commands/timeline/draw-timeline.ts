// Draws a timeline as a Gantt chart in SVG: a bar from each step to the next, and a row per entry with a bar for its duration,
// or a diamond if it has none. Long pauses are compressed, so that a deletion after days does not hide a provisioning of
// milliseconds: the width of a pause grows with the logarithm of its length.
import type { TimelineEntry } from '../../../api/kinds/timeline/timeline-schema.ts'
import { actorOf, describeEntry, formatDuration, formatDurationOf } from './format-timeline.ts'
import { type ShownTimeline, shortRefOf } from './shown-timeline.ts'

const WIDTH = 1_280
const LABEL_WIDTH = 560
const CHART_WIDTH = WIDTH - LABEL_WIDTH - 40
const ROW_HEIGHT = 22
const HEADER_HEIGHT = 92
/** Older rows beyond this number are omitted from the picture. */
const ROWS_MAX = 200
const LABEL_LENGTH_MAX = 76
const COLORS = {
  step: '#c7d2fe',
  change: '#2563eb',
  good: '#16a34a',
  failed: '#dc2626',
  waiting: '#f59e0b',
  event: '#6b7280',
}

export function drawTimeline(timeline: ShownTimeline): string {
  const entries = timeline.entries.slice(-ROWS_MAX)
  const steps = timeline.steps.map(({ name, time }) => ({ name, ms: Date.parse(time) }))
  const xOf = scaleOf([...steps.map(({ ms }) => ms), ...entries.flatMap((entry) => [startOf(entry), endOf(entry)])])
  const height = HEADER_HEIGHT + entries.length * ROW_HEIGHT + 24
  const place = timeline.namespace ? ` in namespace ${timeline.namespace}` : ''
  const omitted = timeline.entries.length - entries.length
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" ` +
      'font-family="system-ui, sans-serif" font-size="12">',
    `<title>${escapeXml(`Timeline of ${shortRefOf(timeline)}${place}`)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(20, 26, `${shortRefOf(timeline)}${place}`, 'font-size="16" font-weight="600"'),
    text(20, 46, subtitleOf(timeline, omitted), 'fill="#6b7280"'),
    ...drawSteps(steps, xOf, formatDurationOf(timeline.source)),
    ...entries.flatMap((entry, index) => drawRow(entry, HEADER_HEIGHT + index * ROW_HEIGHT, xOf)),
    '</svg>',
    '',
  ].join('\n')
}

function subtitleOf({ source, entries }: ShownTimeline, omitted: number): string {
  const origin = source === 'journal' ? 'from the journal' : 'reconstructed from events, conditions and managed fields'
  const first = entries[0]?.time.slice(0, 19).replace('T', ' ') ?? ''
  return `${first} UTC, ${origin}; long pauses are compressed${omitted > 0 ? `; ${omitted} older entries omitted` : ''}`
}

const startOf = ({ time }: TimelineEntry): number => Date.parse(time)
const endOf = (entry: TimelineEntry): number => startOf(entry) + (entry.durationMs ?? 0)

/** Returns a function that maps a time to its x position. The width of a pause is the logarithm of its milliseconds. */
function scaleOf(moments: readonly number[]): (ms: number) => number {
  const ordered = [...new Set(moments)].sort((a, b) => a - b)
  const offsets = new Map<number, number>()
  let offset = 0
  ordered.forEach((ms, index) => {
    offset += index === 0 ? 0 : Math.log2(2 + ms - ordered[index - 1]!)
    offsets.set(ms, offset)
  })
  return (ms) => LABEL_WIDTH + ((offsets.get(ms) ?? 0) / (offset || 1)) * CHART_WIDTH
}

/** Draws a bar from each step to the next, with the name of the step that ends it and its duration. */
function drawSteps(
  steps: readonly { name: string; ms: number }[],
  xOf: (ms: number) => number,
  format: (ms: number) => string,
): string[] {
  return steps.slice(1).flatMap(({ name, ms }, index) => {
    const previousMs = steps[index]!.ms
    const x = xOf(previousMs)
    const width = Math.max(2, xOf(ms) - x - 1)
    const label = `${name} +${format(ms - previousMs)}`
    return [
      `<g><title>${escapeXml(label)}</title>`,
      rect(x, 58, width, 20, COLORS.step),
      width > label.length * 6 ? text(x + 4, 72, label, 'fill="#1e3a8a"') : '',
      '</g>',
    ]
  })
}

function drawRow(entry: TimelineEntry, y: number, xOf: (ms: number) => number): string[] {
  const x = xOf(startOf(entry))
  const color = colorOf(entry)
  const label = `${actorOf(entry)}: ${describeEntry(entry)}`
  const duration = entry.durationMs === undefined ? '' : ` (${formatDuration(entry.durationMs)})`
  return [
    `<g><title>${escapeXml(`${entry.time} ${label}${duration}`)}</title>`,
    `<line x1="20" y1="${y}" x2="${WIDTH - 20}" y2="${y}" stroke="#f3f4f6"/>`,
    text(
      20,
      y + 15,
      label.length > LABEL_LENGTH_MAX ? `${label.slice(0, LABEL_LENGTH_MAX)}…` : label,
      'fill="#111827"',
    ),
    entry.durationMs === undefined
      ? `<path d="M${x.toFixed(1)} ${y + 5}l6 6-6 6-6-6z" fill="${color}"/>`
      : rect(x, y + 5, Math.max(3, xOf(endOf(entry)) - x), 12, color),
    '</g>',
  ]
}

function colorOf({ type, result }: TimelineEntry): string {
  if (type === 'Change') return COLORS.change
  if (type === 'Event') return result === 'Warning' ? COLORS.failed : COLORS.event
  if (result === 'Stuck') return COLORS.waiting
  return result === 'OK' || result === 'Done' ? COLORS.good : COLORS.failed
}

const rect = (x: number, y: number, width: number, height: number, fill: string): string =>
  `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" rx="3" fill="${fill}"/>`

const text = (x: number, y: number, content: string, attributes: string): string =>
  `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escapeXml(content)}</text>`

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const escapeXml = (content: string): string => content.replace(/[&<>"]/g, (character) => ENTITIES[character]!)
