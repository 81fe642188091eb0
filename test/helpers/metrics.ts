// Parses the text format of Prometheus into metric families and their labels.
interface Family {
  /** Values by label. */
  readonly labels: Map<string, Set<string>>
  sampleCount: number
}

/** Families by the names that queries use. A histogram has three names. */
export type Families = Map<string, Family>

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Parses the text and adds its samples to `families`. */
export function parseFamilies(text: string, families: Families = new Map()): Families {
  const getOrCreateFamily = (name: string) => {
    const family = families.get(name) ?? { labels: new Map(), sampleCount: 0 }
    families.set(name, family)
    return family
  }
  for (const line of text.split('\n')) {
    const [, declaredName, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (declaredName && type === 'histogram')
      for (const suffix of ['bucket', 'sum', 'count']) getOrCreateFamily(`${declaredName}_${suffix}`)
    else if (declaredName) getOrCreateFamily(declaredName)
    const [, name, labels = ''] = SAMPLE.exec(line) ?? []
    if (!name) continue
    const family = getOrCreateFamily(name)
    family.sampleCount++
    for (const [, label, value] of labels.matchAll(LABEL)) {
      const values = family.labels.get(label!) ?? new Set<string>()
      family.labels.set(label!, values.add(value!))
    }
  }
  return families
}
