// Keeps pods off nodes that are marked as taking no new ones, unless they tolerate exactly that.

import { tolerates } from '../../../volumes/tolerations.ts'
import { INDIFFERENT, type Plugin } from '../../plugin.ts'

export const UNSCHEDULABLE = 'Unschedulable'
export const REASON_UNSCHEDULABLE = 'node(s) were unschedulable'

const TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const
const REFUSED = [REASON_UNSCHEDULABLE]

export const unschedulable: Plugin = {
  name: UNSCHEDULABLE,
  isAskedAgain: true,
  prepare: ({ pod }) =>
    pod.spec?.tolerations?.some((toleration) => tolerates(toleration, TAINT))
      ? INDIFFERENT
      : { is: 'judge', refuses: ({ node }) => (node?.spec?.unschedulable ? REFUSED : undefined) },
}
