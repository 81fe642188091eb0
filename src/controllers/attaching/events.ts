// The events of the attach-detach controllers, recorded on pods.
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { EventDetails, EventRecorder } from '../../runtime/index.ts'
import type { AttachProblem } from './plan-volume.ts'

export const COMPONENT = 'attachdetach-controller'

export const attachSucceeded = (volumeName: string): EventDetails => ({
  type: 'Normal',
  reason: 'SuccessfulAttachVolume',
  message: `AttachVolume.Attach succeeded for volume "${volumeName}"`,
})

export const attachFailed = (volumeName: string, message: string): EventDetails =>
  failedAttach(`AttachVolume.Attach failed for volume "${volumeName}" : ${message}`)

/** The message names only pods in the pod's namespace; pods in other namespaces are counted. */
export function attachProblem(
  volumeName: string,
  nodeName: string,
  pod: Readonly<Pod>,
  problem: AttachProblem,
): EventDetails {
  if (problem.is === 'full') {
    return attachFailed(
      volumeName,
      `node ${nodeName} has reached the driver's limit of ${problem.volumesMax} volumes; ` +
        'the volume is attached after another one has been detached',
    )
  }
  return failedAttach(`Multi-Attach error for volume "${volumeName}" ${describeUsers(pod, problem.users)}`)
}

function describeUsers(pod: Readonly<Pod>, users: readonly Readonly<Pod>[]): string {
  if (users.length === 0) return "Volume is already exclusively attached to one node and can't be attached to another"
  const namedPods = users.filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
  const otherCount = users.length - namedPods.length
  const otherPods = `${otherCount} pod(s) in different namespaces`
  if (namedPods.length === 0) return `Volume is already used by ${otherPods}`
  const names = namedPods.map(({ metadata }) => metadata.name).join(', ')
  return `Volume is already used by pod(s) ${names}${otherCount > 0 ? ` and ${otherPods}` : ''}`
}

export function recordOnPods(
  events: Pick<EventRecorder, 'record'>,
  pods: readonly Readonly<Pod>[],
  eventFor: (pod: Readonly<Pod>) => EventDetails,
): void {
  for (const pod of pods) events.record(podKind, pod, eventFor(pod))
}

const failedAttach = (message: string): EventDetails => ({ type: 'Warning', reason: 'FailedAttachVolume', message })
