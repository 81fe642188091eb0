// Builds the claim of a generic ephemeral volume from the volume's template. The claim is named after pod and volume and
// owned by the pod, so that the garbage collector deletes it with the pod. Also checks whether the pod owns an existing
// claim. Pure.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

type Volume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number]

export const claimNameFor = (pod: Readonly<Pod>, volume: Volume): string => `${pod.metadata.name}-${volume.name}`

/** Returns undefined for a volume without a template. The Stowage API server rejects such volumes; others may not. */
export function claimFromTemplate(pod: Readonly<Stored<Pod>>, volume: Volume): PersistentVolumeClaim | undefined {
  const template = volume.ephemeral?.volumeClaimTemplate
  if (!template) return undefined
  const { name, namespace, uid } = pod.metadata
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

/** Whether this pod, and not an earlier one of the same name, owns the claim. */
export const isOwnedBy = ({ metadata }: Readonly<PersistentVolumeClaim>, pod: Readonly<Pod>): boolean =>
  metadata.namespace === pod.metadata.namespace &&
  (metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === pod.metadata.uid) ?? false)

/** Formats the message of an event about a claim of the same name that the pod does not own. */
export const notOwnedMessage = (claimKey: string, podKey: string): string =>
  `PVC ${claimKey} was not created for pod ${podKey} (pod is not owner)`
