// Parses the Prometheus text format. histograms.ts computes with the histograms.

export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Samples by the name of their series, such as `x_bucket`. */
export type MetricSamples = ReadonlyMap<string, readonly MetricSample[]>

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/gm
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

export function parseMetricsText(text: string): MetricSamples {
  const samples = new Map<string, MetricSample[]>()
  for (const [, name = '', labelText = '', value] of text.matchAll(SAMPLE)) {
    const labels = Object.fromEntries(
      [...labelText.matchAll(LABEL)].map(([, label, text]) => [label, unescapeLabel(text!)]),
    )
    const list = samples.get(name)
    if (list) list.push({ labels, value: Number(value) })
    else samples.set(name, [{ labels, value: Number(value) }])
  }
  return samples
}

const unescapeLabel = (text: string): string => text.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char))
