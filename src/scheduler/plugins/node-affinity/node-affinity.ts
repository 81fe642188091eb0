// Node selector and node affinity: what a pod requires of a node's labels and name, and what it would rather have.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { nodeMeetsTerm } from '../../node-selector.ts'
import { INDIFFERENT, type Plugin, SCORE_MAX } from '../../plugin.ts'

export const NODE_AFFINITY = 'NodeAffinity'
export const REASON_AFFINITY = "node(s) didn't match Pod's node affinity/selector"

const REFUSED = [REASON_AFFINITY]

export const nodeAffinity: Plugin = {
  name: NODE_AFFINITY,
  weight: 2,
  prepare({ pod }) {
    const required = requirementOf(pod)
    const preferred = pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    if (!required && preferred.length === 0) return INDIFFERENT
    return {
      is: 'judge',
      ...(required ? { refuses: (node) => (required(node) ? undefined : REFUSED) } : {}),
      ...(preferred.length > 0 ? { scores: (nodes) => shares(nodes.map((node) => pointsOf(node, preferred))) } : {}),
    }
  },
}

/** Undefined when the pod requires nothing. */
export function requirementOf({ spec }: Readonly<Pod>): ((node: NodeView) => boolean) | undefined {
  const labels = Object.entries(spec?.nodeSelector ?? {})
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  if (labels.length === 0 && !terms) return undefined
  return (node) =>
    labels.every(([key, value]) => node.labels[key] === value) &&
    (!terms || terms.some((term) => nodeMeetsTerm(node, term)))
}

type Preferred = NonNullable<
  NonNullable<
    NonNullable<NonNullable<Pod['spec']>['affinity']>['nodeAffinity']
  >['preferredDuringSchedulingIgnoredDuringExecution']
>

function pointsOf(node: NodeView, preferred: Preferred): number {
  let points = 0
  for (const { weight, preference } of preferred) {
    // An empty preference prefers every node alike, where an empty requirement would match none.
    const isEmpty = !preference.matchExpressions?.length && !preference.matchFields?.length
    if (isEmpty || nodeMeetsTerm(node, preference)) points += weight
  }
  return points
}

function shares(points: readonly number[]): number[] | undefined {
  const most = Math.max(...points)
  return most <= 0 ? undefined : points.map((one) => Math.floor((SCORE_MAX * one) / most))
}
