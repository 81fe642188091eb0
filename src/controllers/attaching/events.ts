// Everything attaching tells people, on the pods that wait, in the words they know and search for.
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { EventRecorder, Happening } from '../../runtime/index.ts'
import type { Trouble } from './plan-volume.ts'

/** Who reports. */
export const COMPONENT = 'attachdetach-controller'

export const attached = (volumeName: string): Happening => ({
  type: 'Normal',
  reason: 'SuccessfulAttachVolume',
  message: `AttachVolume.Attach succeeded for volume "${volumeName}"`,
})

export const attachFailed = (volumeName: string, because: string): Happening =>
  failed(`AttachVolume.Attach failed for volume "${volumeName}" : ${because}`)

/** Each pod is told in its own words: users of one namespace do not see names of another. */
export function troubleOf(volumeName: string, nodeName: string, pod: Readonly<Pod>, trouble: Trouble): Happening {
  if (trouble.is === 'full') {
    return attachFailed(
      volumeName,
      `node ${nodeName} has all the ${trouble.volumesMax} volumes of the driver that it can take; ` +
        'it is attached when another one leaves the node',
    )
  }
  return failed(`Multi-Attach error for volume "${volumeName}" ${usersText(pod, trouble.usedBy)}`)
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

export function tellPods(
  events: Pick<EventRecorder, 'record'>,
  pods: readonly Readonly<Pod>[],
  happeningFor: (pod: Readonly<Pod>) => Happening,
): void {
  for (const pod of pods) events.record(podKind, pod, happeningFor(pod))
}

const failed = (message: string): Happening => ({ type: 'Warning', reason: 'FailedAttachVolume', message })
