// Rejects nodes with a taint that the pod does not tolerate, and gives higher scores to nodes with fewer untolerated
// PreferNoSchedule taints.
import type { Taint } from '../../../api/kinds/node/node-schema.ts'
import type { Toleration } from '../../../api/kinds/pod/pod-schema.ts'
import { tolerates } from '../../../volumes/tolerations.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type Plugin, SCORE_MAX } from '../../framework/plugin.ts'
import { unresolvable } from '../../framework/status.ts'
import { nodeChanged } from '../shared-hints.ts'

export const UNTOLERATED_TAINT = { type: 'UntoleratedTaint', message: 'node(s) had untolerated taint(s)' }

const REJECTION = unresolvable(UNTOLERATED_TAINT)

export const taintToleration: Plugin<readonly Toleration[]> = {
  name: 'TaintToleration',
  weight: () => 3,
  events: [nodeChanged],
  isRecheckedBeforeBind: true,
  preFilter: ({ pod }) => ({ code: 'Success', state: pod.spec?.tolerations ?? [] }),
  filter: (tolerations, { taints }) =>
    taints.length > 0 && hasUntoleratedTaint(taints, tolerations) ? REJECTION : undefined,
  detailRejection: (tolerations, { taints }) =>
    taints
      .filter((taint) => isUntolerated(taint, tolerations))
      .map((taint) => ({
        type: 'UntoleratedTaint',
        message: `the pod does not tolerate the taint ${taintText(taint)}`,
      })),
  score: (tolerations, nodes) => scorePreferNoSchedule(nodes, tolerations),
  signPod: ({ pod }) => pod.spec?.tolerations,
}

const isTolerated = (taint: Taint, tolerations: readonly Toleration[]): boolean =>
  tolerations.some((toleration) => tolerates(toleration, taint))

const isUntolerated = (taint: Taint, tolerations: readonly Toleration[]): boolean =>
  taint.effect !== 'PreferNoSchedule' && !isTolerated(taint, tolerations)

const hasUntoleratedTaint = (taints: readonly Taint[], tolerations: readonly Toleration[]): boolean =>
  taints.some((taint) => isUntolerated(taint, tolerations))

/** Returns the taint as `kubectl taint` writes it. */
const taintText = ({ key, value, effect }: Taint): string => `${key}${value ? `=${value}` : ''}:${effect}`

function scorePreferNoSchedule(nodes: readonly NodeInfo[], tolerations: readonly Toleration[]): number[] | undefined {
  const counts = nodes.map(
    ({ taints }) =>
      taints.filter((taint) => taint.effect === 'PreferNoSchedule' && !isTolerated(taint, tolerations)).length,
  )
  const max = Math.max(...counts)
  return max === 0 ? undefined : counts.map((count) => SCORE_MAX - Math.floor((SCORE_MAX * count) / max))
}
