// Parses what alert rules refer to: metrics, their labels, and the values these are compared with. Covers PromQL without
// label_replace and similar functions.
import { parse } from 'yaml'

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

export interface Mention {
  readonly metric: string
  /** Everything that must be one of its labels: in its own braces, in `by (…)`, and in the annotations. */
  readonly labels: readonly string[]
  /** `label="value"`, verbatim. */
  readonly values: readonly (readonly [label: string, value: string])[]
}

export const rulesOf = (text: string): AlertRule[] =>
  (parse(text) as { groups: { rules: AlertRule[] }[] }).groups.flatMap(({ rules }) => rules)

const WORDS = new Set(['by', 'without', 'and', 'or', 'unless', 'on', 'ignoring', 'bool', 'offset'])
const TOKEN = /[a-zA-Z_:][\w:]*|\{[^}]*\}|"[^"]*"|\[[^\]]*\]|[\d.]+(?:e\d+)?|\S/g

export function mentionsOf({ expr, annotations }: AlertRule): Mention[] {
  const tokens = expr.match(TOKEN) ?? []
  const grouping = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => words(names!))
  const said = Object.values(annotations).flatMap((text) => [...text.matchAll(/\$labels\.(\w+)/g)].map(([, n]) => n!))
  const groupingNames = new Set(grouping)
  const mentions: Mention[] = []
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1] ?? ''
    const isFunction = next === '(' || next === 'by'
    const isName = /^[a-zA-Z_]/.test(token) && !WORDS.has(token) && !isFunction && !groupingNames.has(token)
    if (!isName) continue
    const matchers = [...next.matchAll(/(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"/g)]
    mentions.push({
      metric: token,
      labels: [...new Set([...matchers.map(([, label]) => label!), ...grouping, ...said])],
      values: matchers.filter(([, , sign]) => sign === '=').map(([, label, , value]) => [label!, value!] as const),
    })
  }
  return mentions
}

const words = (text: string) =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
