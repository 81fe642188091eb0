// The events of the attach-detach controllers, recorded on pods, in the wording of Kubernetes.
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { EventDetails, EventRecorder } from '../../runtime/index.ts'
import type { AttachProblem } from './plan-volume.ts'

export const COMPONENT = 'attachdetach-controller'

export const attached = (volumeName: string): EventDetails => ({
  type: 'Normal',
  reason: 'SuccessfulAttachVolume',
  message: `AttachVolume.Attach succeeded for volume "${volumeName}"`,
})

export const attachFailed = (volumeName: string, because: string): EventDetails =>
  failed(`AttachVolume.Attach failed for volume "${volumeName}" : ${because}`)

/** Names only pods of the pod's own namespace. */
export function problemEvent(
  volumeName: string,
  nodeName: string,
  pod: Readonly<Pod>,
  problem: AttachProblem,
): EventDetails {
  if (problem.is === 'full') {
    return attachFailed(
      volumeName,
      `node ${nodeName} has reached the driver's limit of ${problem.volumesMax} volumes; ` +
        'it is attached when another volume has been detached',
    )
  }
  return failed(`Multi-Attach error for volume "${volumeName}" ${usersText(pod, problem.usedBy)}`)
}

function usersText(pod: Readonly<Pod>, usedBy: readonly Readonly<Pod>[]): string {
  if (usedBy.length === 0) return "Volume is already exclusively attached to one node and can't be attached to another"
  const near = usedBy.filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
  const far = usedBy.length - near.length
  const others = `${far} pod(s) in different namespaces`
  if (near.length === 0) return `Volume is already used by ${others}`
  const names = near.map(({ metadata }) => metadata.name).join(', ')
  return `Volume is already used by pod(s) ${names}${far > 0 ? ` and ${others}` : ''}`
}

export function recordOnPods(
  events: Pick<EventRecorder, 'record'>,
  pods: readonly Readonly<Pod>[],
  eventFor: (pod: Readonly<Pod>) => EventDetails,
): void {
  for (const pod of pods) events.record(podKind, pod, eventFor(pod))
}

const failed = (message: string): EventDetails => ({ type: 'Warning', reason: 'FailedAttachVolume', message })
