// Parses the text format of Prometheus: the families that a process serves, and their labels.
export interface Family {
  /** Label → values seen. */
  readonly labels: Map<string, Set<string>>
  /** Number of lines. */
  samples: number
}

/** By the names that queries use: a histogram has three. */
export type Families = Map<string, Family>

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Merges the text into the families. */
export function readFamilies(text: string, families: Families = new Map()): Families {
  const family = (name: string) => {
    const known = families.get(name) ?? { labels: new Map(), samples: 0 }
    families.set(name, known)
    return known
  }
  for (const line of text.split('\n')) {
    const [, declared, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (declared && type === 'histogram') for (const part of ['bucket', 'sum', 'count']) family(`${declared}_${part}`)
    else if (declared) family(declared)
    const [, name, labels = ''] = SAMPLE.exec(line) ?? []
    if (!name) continue
    const known = family(name)
    known.samples++
    for (const [, label, value] of labels.matchAll(LABEL)) {
      const values = known.labels.get(label!) ?? new Set<string>()
      known.labels.set(label!, values.add(value!))
    }
  }
  return families
}
