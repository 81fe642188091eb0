// Finds the metrics, labels and label values that alert rules mention. Does not support label_replace and similar functions
// of PromQL.
import { parse } from 'yaml'

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

/** A metric in the expression of a rule. */
export interface MetricMention {
  readonly metric: string
  /** Labels that the metric must have: from its matchers, from `by (…)`, and from the annotations. */
  readonly labels: readonly string[]
  /** Label and value of each `label="value"` matcher. */
  readonly values: readonly (readonly [label: string, value: string])[]
}

export const parseRules = (text: string): AlertRule[] =>
  (parse(text) as { groups: { rules: AlertRule[] }[] }).groups.flatMap(({ rules }) => rules)

const KEYWORDS = new Set(['by', 'without', 'and', 'or', 'unless', 'on', 'ignoring', 'bool', 'offset'])
const TOKEN = /[a-zA-Z_:][\w:]*|\{[^}]*\}|"[^"]*"|\[[^\]]*\]|[\d.]+(?:e\d+)?|\S/g

export function findMetricMentions({ expr, annotations }: AlertRule): MetricMention[] {
  const tokens = expr.match(TOKEN) ?? []
  const grouping = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => splitNames(names!))
  const annotationLabels = Object.values(annotations).flatMap((text) =>
    [...text.matchAll(/\$labels\.(\w+)/g)].map(([, n]) => n!),
  )
  const groupingNames = new Set(grouping)
  const mentions: MetricMention[] = []
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1] ?? ''
    const isFunction = next === '(' || next === 'by'
    const isName = /^[a-zA-Z_]/.test(token) && !KEYWORDS.has(token) && !isFunction && !groupingNames.has(token)
    if (!isName) continue
    const matchers = [...next.matchAll(/(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"/g)]
    mentions.push({
      metric: token,
      labels: [...new Set([...matchers.map(([, label]) => label!), ...grouping, ...annotationLabels])],
      values: matchers
        .filter(([, , operator]) => operator === '=')
        .map(([, label, , value]) => [label!, value!] as const),
    })
  }
  return mentions
}

const splitNames = (text: string) =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
