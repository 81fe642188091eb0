// Converts metrics from the text format of Prometheus to OpenMetrics, which has exemplars, for scrapers that accept it.

/** An observation that a bucket refers to. */
export interface Exemplar {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  readonly atMs: number
}

/** Returns the exemplar of a series, if it has one. */
export type ExemplarOf = (series: {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}) => Exemplar | undefined

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** OpenMetrics limits the labels of an exemplar to this number of characters. */
const EXEMPLAR_LENGTH_MAX = 128

/** Returns whether the Accept header of a scraper names OpenMetrics with a quality above 0. */
export const acceptsOpenMetrics = (accept: string | undefined): boolean =>
  (accept ?? '')
    .split(',')
    .some((range) => /^\s*application\/openmetrics-text\s*(;|$)/.test(range) && !/;\s*q=0(\.0*)?\s*(;|$)/.test(range))

/** Converts the text format of Prometheus. */
export function toOpenMetrics(text: string, exemplarOf: ExemplarOf): string {
  const lines: string[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    lines.push(line.startsWith('#') ? convertComment(line, text) : convertSample(line, exemplarOf))
  }
  return `${lines.join('\n')}\n# EOF\n`
}

/** The name of a counter family has no suffix; a counter without the suffix `_total` has the type unknown. */
function convertComment(line: string, text: string): string {
  const [, comment = '', name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line) ?? []
  if (comment === '') return line
  const isCounter = comment === 'TYPE' ? rest === 'counter' : text.includes(`# TYPE ${name} counter\n`)
  if (!isCounter) return line
  if (name.endsWith('_total')) return `# ${comment} ${name.slice(0, -'_total'.length)} ${rest}`
  return comment === 'TYPE' ? `# TYPE ${name} unknown` : line
}

function convertSample(line: string, exemplarOf: ExemplarOf): string {
  const [, name = '', labelText = ''] = /^(\w+_bucket)\{(.*)\} \S+$/.exec(line) ?? []
  if (name === '') return line
  const labels = Object.fromEntries(
    [...labelText.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', value = '']) => [label, value]),
  )
  const exemplar = exemplarOf({ name, labels })
  return exemplar ? `${line} # ${formatExemplar(exemplar)}` : line
}

/** Values of labels are cut to the limit of OpenMetrics. */
function formatExemplar({ labels, value, atMs }: Exemplar): string {
  let remaining = EXEMPLAR_LENGTH_MAX
  const texts = Object.entries(labels).map(([label, text]) => {
    const cut = text.slice(0, Math.max(0, remaining - label.length))
    remaining -= label.length + cut.length
    return `${label}="${cut.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))}"`
  })
  return `{${texts.join(',')}} ${value} ${(atMs / 1_000).toFixed(3)}`
}
