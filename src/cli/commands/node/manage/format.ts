// Formats the plans and results of `stowage node drain` and `stowage node forget` as text.

import { formatNames } from '../../../format-names.ts'
import { formatTable } from '../../../output/table.ts'
import type { DrainResult } from './drain.ts'
import type { DrainPlan, DrainPod } from './plan-drain.ts'
import type { ForgetPlan } from './plan-forget.ts'

/** A pod that is evicted with a message is lost, loses data, or cannot run on another node. */
const describeAction = ({ action, message }: DrainPod): string => {
  if (action === 'keep') return 'stays'
  return action === 'evict' && !message ? 'moves' : 'leaves'
}

export function formatDrainPlan({ node, pods }: DrainPlan): string {
  if (pods.length === 0) return `No pod runs on node ${node}.\n`
  const rows = pods.map((pod) => {
    const { namespace, name, message = '', flag } = pod
    return [`${namespace}/${name}`, describeAction(pod), flag ? `${message} (evict it with ${flag})` : message]
  })
  return formatTable([['POD', 'ACTION', 'REASON'], ...rows])
}

export function formatDrainResult(plan: DrainPlan, result: DrainResult): string {
  const { movedPods, waitingPods, attachedVolumes } = result
  const keptCount = plan.pods.filter(({ flag }) => flag).length
  const lines = [`Node ${plan.node} is cordoned; ${countPods(movedPods.length)} left it.`]
  for (const { pod, message } of waitingPods) lines.push(`${pod} is still there: ${message}`)
  if (attachedVolumes.length > 0) lines.push(`Still attached: ${formatNames(attachedVolumes)}.`)
  if (keptCount > 0) lines.push(`${countPods(keptCount)} stayed, see above.`)
  if (waitingPods.length + attachedVolumes.length > 0) lines.push('Run the command again to continue.')
  return `${lines.join('\n')}\n`
}

const countPods = (count: number): string => (count === 1 ? '1 pod' : `${count} pods`)

export function formatForgetPlan(plan: ForgetPlan, deletesVolumes: boolean): string {
  const { node, pods, attachments, capacityObjects, hasCsiNode, volumes } = plan
  const rows = [
    ['Node', node],
    ...(hasCsiNode ? [['CSINode', node]] : []),
    ...pods.map(({ namespace, name }) => ['Pod', `${namespace}/${name}`]),
    ...attachments.map((name) => ['VolumeAttachment', name]),
    ...capacityObjects.map((name) => ['CSIStorageCapacity', name]),
  ]
  const list = rows.map(([kind, name]) => `  ${kind} ${name}\n`).join('')
  const volumeList = volumes
    .map(({ volume, size, claim }) => `  PersistentVolume ${volume} (${size}${claim ? `, claim ${claim}` : ''})\n`)
    .join('')
  const volumeTitle = deletesVolumes
    ? 'To be removed with their claims; LOSES DATA if the storage of the node still exists:'
    : 'To be kept, although no other node can reach them (remove them with --delete-volumes):'
  return `To be removed:\n${list}${volumes.length > 0 ? `${volumeTitle}\n${volumeList}` : ''}`
}
