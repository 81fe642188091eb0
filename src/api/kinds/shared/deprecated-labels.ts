// Lists deprecated labels and their successors. A deprecated label in a topology or affinity causes a warning, and the node
// affinity of a volume may be changed from a deprecated label to its successor.
import type { LabelSelector } from './meta-schema.ts'
import type { NodeSelectorTerm } from './references-schema.ts'

const WARNINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
    'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    'app.kubernetes.io/created-by': 'deprecated since v1.9',
    'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
    'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
  }),
)

const SUCCESSORS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
    'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
    'beta.kubernetes.io/os': 'kubernetes.io/os',
    'beta.kubernetes.io/arch': 'kubernetes.io/arch',
    'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
  }),
)

export const deprecatedLabelWarning = (label: string): string | undefined => WARNINGS.get(label)

/** Returns the label that replaces a deprecated one, if any. */
export const successorOf = (label: string): string | undefined => SUCCESSORS.get(label)

export const nodeSelectorTermWarnings = (term: NodeSelectorTerm, field: string): string[] =>
  expressionWarnings(term.matchExpressions, field)

export function labelSelectorWarnings(selector: LabelSelector | undefined, field: string): string[] {
  const matchLabelsWarnings = Object.keys(selector?.matchLabels ?? {}).flatMap((label) => {
    const warning = deprecatedLabelWarning(label)
    return warning ? [`${field}.matchLabels.${label}: ${warning}`] : []
  })
  return [...expressionWarnings(selector?.matchExpressions, field), ...matchLabelsWarnings]
}

function expressionWarnings(expressions: readonly { readonly key: string }[] = [], field: string): string[] {
  return expressions.flatMap(({ key }, index) => {
    const warning = deprecatedLabelWarning(key)
    return warning ? [`${field}.matchExpressions[${index}].key: ${key} is ${warning}`] : []
  })
}
