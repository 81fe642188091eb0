// Node selector and node affinity: rejects nodes that do not match the required terms of the pod, and scores the others
// by the weights of its preferred terms.

import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { NodeSelectorTerm } from '../../../api/kinds/shared/references-schema.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type Plugin, SCORE_MAX } from '../../framework/plugin.ts'
import { SKIP, unresolvable } from '../../framework/status.ts'
import { nodeChanged } from '../shared-hints.ts'

export const NODE_AFFINITY_MISMATCH = {
  type: 'NodeAffinityMismatch',
  message: "node(s) didn't match Pod's node affinity/selector",
}

const REJECTION = unresolvable(NODE_AFFINITY_MISMATCH)

interface State {
  readonly matches: ((node: NodeInfo) => boolean) | undefined
  readonly preferredTerms: PreferredTerms
}

export const nodeAffinity: Plugin<State> = {
  name: 'NodeAffinity',
  weight: () => 2,
  events: [nodeChanged],
  preFilter({ pod }) {
    const matches = requiredAffinity(pod)
    const preferredTerms = pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    return matches || preferredTerms.length > 0 ? { code: 'Success', state: { matches, preferredTerms } } : SKIP
  },
  filter: ({ matches }, node) => (!matches || matches(node) ? undefined : REJECTION),
  score: ({ preferredTerms }, nodes) =>
    preferredTerms.length > 0 ? normalize(nodes.map((node) => sumOfWeights(node, preferredTerms))) : undefined,
  signPod: ({ pod }) => [pod.spec?.nodeSelector, pod.spec?.affinity?.nodeAffinity],
}

/** Returns undefined if the pod has no required terms. */
function requiredAffinity({ spec }: Readonly<Pod>): State['matches'] {
  const labels = Object.entries(spec?.nodeSelector ?? {})
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  if (labels.length === 0 && !terms) return undefined
  return (node) =>
    labels.every(([key, value]) => node.labels[key] === value) &&
    (!terms || terms.some((term) => nodeMatches(node, term)))
}

type PreferredTerms = NonNullable<
  NonNullable<
    NonNullable<NonNullable<Pod['spec']>['affinity']>['nodeAffinity']
  >['preferredDuringSchedulingIgnoredDuringExecution']
>

function sumOfWeights(node: NodeInfo, preferred: PreferredTerms): number {
  let sum = 0
  for (const { weight, preference } of preferred) {
    // An empty preferred term matches every node, whereas an empty required term matches none.
    const isEmpty = !preference.matchExpressions?.length && !preference.matchFields?.length
    if (isEmpty || nodeMatches(node, preference)) sum += weight
  }
  return sum
}

/** Uses the implementation for volumes, which have the same node selector terms. */
const nodeMatches = (node: NodeInfo, term: NodeSelectorTerm): boolean =>
  isReachableFrom({ metadata: {}, spec: { nodeAffinity: { required: { nodeSelectorTerms: [term] } } } }, node)

function normalize(weights: readonly number[]): number[] | undefined {
  const max = Math.max(...weights)
  return max <= 0 ? undefined : weights.map((weight) => Math.floor((SCORE_MAX * weight) / max))
}
