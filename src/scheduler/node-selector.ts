// Whether a node meets a term of a node selector, as pods write them. Volumes use the same terms; the rules for them
// are the same, so there is one implementation, the binder's.
import type { NodeSelectorTerm } from '../api/kinds/shared/references-schema.ts'
import { isReachableFrom } from '../volumes/node-affinity.ts'
import type { NodeView } from './cluster/node-view.ts'

export const nodeMeetsTerm = (node: NodeView, term: NodeSelectorTerm): boolean =>
  isReachableFrom({ metadata: {}, spec: { nodeAffinity: { required: { nodeSelectorTerms: [term] } } } }, node)
