// Reads the queries of a Grafana dashboard as alert rules. alert-rules.ts can then find their metrics.
import type { AlertRule } from './alert-rules.ts'

export interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Dashboard {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] }
}

export const parseDashboard = (text: string): Dashboard => JSON.parse(text)

/** Returns the queries of the panels and of the variables. The labels in a legend come from the query's result. */
export function queriesOf({ panels, templating }: Dashboard): AlertRule[] {
  const variables = templating.list.flatMap(({ name, query }) => {
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? []
    return metric && label
      ? [{ alert: `variable ${name}`, expr: `sum by (${label}) (${metric})`, annotations: {} }]
      : []
  })
  const targets = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      alert: `${title}: ${legendFormat}`,
      expr,
      annotations: { legend: legendFormat.replace(/\{\{(\w+)\}\}/g, '$labels.$1') },
    })),
  )
  return [...variables, ...targets]
}
