// Rejects cordoned nodes, unless the pod tolerates the taint of cordoned nodes.
import { tolerates } from '../../../volumes/tolerations.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { Plugin } from '../../framework/plugin.ts'
import { SKIP, unresolvable } from '../../framework/status.ts'
import { nodeChanged } from '../shared-hints.ts'

export const NODE_UNSCHEDULABLE = { type: 'NodeUnschedulable', message: 'node(s) were unschedulable' }

const REJECTION = unresolvable(NODE_UNSCHEDULABLE)
const TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const

export const nodeUnschedulable: Plugin<undefined> = {
  name: 'NodeUnschedulable',
  events: [nodeChanged],
  isRecheckedBeforeBind: true,
  preFilter: (pod) => (toleratesCordon(pod) ? SKIP : { code: 'Success', state: undefined }),
  filter: (_, { node }) => (node?.spec?.unschedulable ? REJECTION : undefined),
  signPod: toleratesCordon,
}

function toleratesCordon({ pod }: PodInfo): boolean {
  return pod.spec?.tolerations?.some((toleration) => tolerates(toleration, TAINT)) ?? false
}
