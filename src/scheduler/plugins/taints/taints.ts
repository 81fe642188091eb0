// Keeps pods off tainted nodes they do not tolerate, and prefers nodes whose soft taints they do.
import type { Taint } from '../../../api/kinds/node/node-schema.ts'
import type { Toleration } from '../../../api/kinds/pod/pod-schema.ts'
import { tolerates } from '../../../volumes/tolerations.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { type Plugin, SCORE_MAX } from '../../plugin.ts'

export const TAINTS = 'TaintToleration'
export const REASON_TAINT = 'node(s) had untolerated taint(s)'

const REFUSED = [REASON_TAINT]

export const taints: Plugin = {
  name: TAINTS,
  weight: 3,
  isAskedAgain: true,
  prepare({ pod }) {
    const tolerations = pod.spec?.tolerations ?? []
    return {
      is: 'judge',
      refuses: (node) => (node.taints.length > 0 && keepsOff(node.taints, tolerations) ? REFUSED : undefined),
      scores: (nodes) => fewestSoftTaints(nodes, tolerations),
    }
  },
}

export const keepsOff = (onNode: readonly Taint[], tolerations: readonly Toleration[]): boolean =>
  onNode.some((taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)))

function fewestSoftTaints(nodes: readonly NodeView[], tolerations: readonly Toleration[]): number[] | undefined {
  const counts = nodes.map(
    ({ taints: onNode }) =>
      onNode.filter((taint) => taint.effect === 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)))
        .length,
  )
  const most = Math.max(...counts)
  return most === 0 ? undefined : counts.map((count) => SCORE_MAX - Math.floor((SCORE_MAX * count) / most))
}
