// The claim an ephemeral volume of a pod stands for: named after pod and volume, made from the volume's template, and
// owned by the pod, so that it goes when the pod goes.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

type Volume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number]

export const claimNameFor = (pod: Readonly<Pod>, volume: Volume): string => `${pod.metadata.name}-${volume.name}`

/** Undefined for a volume without a template, which no server of ours stores. */
export function claimFromTemplate(pod: Readonly<Pod>, volume: Volume): PersistentVolumeClaim | undefined {
  const template = volume.ephemeral?.volumeClaimTemplate
  if (!template) return undefined
  const { name = '', namespace, uid = '' } = pod.metadata
  const owner = { apiVersion: 'v1', kind: 'Pod', name, uid, controller: true, blockOwnerDeletion: true }
  const { labels, annotations } = template.metadata ?? {}
  return {
    metadata: {
      name: claimNameFor(pod, volume),
      namespace,
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
      ownerReferences: [owner],
    },
    spec: template.spec,
  }
}

/** Whether the claim was made for this very pod, not for an earlier one of the same name. */
export const isMadeFor = ({ metadata }: Readonly<PersistentVolumeClaim>, pod: Readonly<Pod>): boolean =>
  metadata.namespace === pod.metadata.namespace &&
  (metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === pod.metadata.uid) ?? false)

export const notMadeFor = (claimKey: string, podKey: string): string =>
  `PVC ${claimKey} was not created for pod ${podKey} (pod is not owner)`
