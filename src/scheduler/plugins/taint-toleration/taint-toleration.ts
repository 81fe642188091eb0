// Rejects nodes with a taint the pod does not tolerate, and prefers nodes with fewer untolerated PreferNoSchedule taints.
import type { Taint } from '../../../api/kinds/node/node-schema.ts'
import type { Toleration } from '../../../api/kinds/pod/pod-schema.ts'
import { tolerates } from '../../../volumes/tolerations.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type Plugin, SCORE_MAX } from '../../framework/plugin.ts'
import { unschedulable } from '../../framework/status.ts'
import { nodeChanged } from '../shared-hints.ts'

export const UNTOLERATED_TAINT = { type: 'UntoleratedTaint', message: 'node(s) had untolerated taint(s)' }

const REJECTED = unschedulable(UNTOLERATED_TAINT)

export const taintToleration: Plugin<readonly Toleration[]> = {
  name: 'TaintToleration',
  weight: 3,
  events: [nodeChanged],
  isRecheckedBeforeBind: true,
  preFilter: ({ pod }) => ({ code: 'Success', state: pod.spec?.tolerations ?? [] }),
  filter: (tolerations, { taints }) =>
    taints.length > 0 && hasUntolerated(taints, tolerations) ? REJECTED : undefined,
  score: (tolerations, nodes) => fewestPreferNoSchedule(nodes, tolerations),
  signPod: ({ pod }) => pod.spec?.tolerations,
}

const hasUntolerated = (taints: readonly Taint[], tolerations: readonly Toleration[]): boolean =>
  taints.some((taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)))

function fewestPreferNoSchedule(nodes: readonly NodeInfo[], tolerations: readonly Toleration[]): number[] | undefined {
  const counts = nodes.map(
    ({ taints }) =>
      taints.filter((taint) => taint.effect === 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)))
        .length,
  )
  const most = Math.max(...counts)
  return most === 0 ? undefined : counts.map((count) => SCORE_MAX - Math.floor((SCORE_MAX * count) / most))
}
