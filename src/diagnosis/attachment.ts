// Diagnoses the attachment of a pod's volumes to its node: attached to another node, failed, or in progress.
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import type { Cluster, StoredPod } from './cluster.ts'
import { type Diagnosis, fix, type Subject } from './diagnosis.ts'
import { currentOperation, diagnoseFailure, lastFailure } from './last-failure.ts'
import { diagnoseNodeHealth } from './node-health.ts'

/** Diagnoses each volume of the pod that is not attached to the node although its driver requires attachment. */
export function diagnoseAttachments(pod: StoredPod, nodeName: string, cluster: Cluster): Diagnosis[] {
  return claimsOfPod(pod).flatMap((key): Diagnosis[] => {
    const volumeName = cluster.caches.claims.get(key)?.spec?.volumeName
    const volume = volumeName ? cluster.caches.volumes.get(volumeName) : undefined
    const driver = volume?.spec?.csi?.driver
    if (!volume || !driver || cluster.caches.drivers.get(driver)?.spec.attachRequired === false) return []
    const attachments = cluster.snapshot.attachments.filter(
      ({ spec }) => spec.source.persistentVolumeName === volume.metadata.name,
    )
    const nodeAttachment = attachments.find(({ spec }) => spec.nodeName === nodeName)
    if (nodeAttachment?.status?.attached) return []
    const subject: Subject = { kind: 'PersistentVolume', name: volume.metadata.name }
    const otherAttachment = attachments.find(({ spec }) => spec.nodeName !== nodeName)
    if (otherAttachment && !volume.spec?.accessModes?.some((mode) => mode.endsWith('Many')))
      return [diagnoseOtherNode(subject, key, otherAttachment.spec.nodeName, nodeName, cluster)]
    const attachment: Subject | undefined = nodeAttachment && {
      kind: 'VolumeAttachment',
      name: nodeAttachment.metadata.name,
    }
    const error = nodeAttachment?.status?.attachError?.message
    const condition = error && attachment ? diagnoseFailure(error, 'attach', { subject: attachment }) : undefined
    const failure = attachment && lastFailure(cluster, attachment, 'attach', { reasons: [], condition })
    if (failure) {
      const message = `the volume could not be attached to ${nodeName}`
      return [{ subject, state: 'failed', reason: 'AttachFailed', message, children: [failure] }]
    }
    // The attaching controller creates the VolumeAttachment; the attacher of the driver then attaches the volume.
    const current = currentOperation(cluster, attachment ?? subject, 'attach')
    const message = attachment
      ? `the attacher of ${driver} is attaching the volume to ${nodeName}`
      : `no VolumeAttachment for the node ${nodeName} exists yet`
    const children = current ? { children: [current] } : {}
    return [{ subject, state: 'waiting', reason: attachment ? 'Attaching' : 'NotAttached', message, ...children }]
  })
}

function diagnoseOtherNode(subject: Subject, claimKey: string, from: string, to: string, cluster: Cluster): Diagnosis {
  const users = cluster.podsUsing(claimKey).filter(({ spec }) => spec?.nodeName === from)
  const node = diagnoseNodeHealth(from, cluster)
  const names = users.map(({ metadata }) => metadata.name)
  return {
    subject,
    state: 'failed',
    reason: 'AttachedToOtherNode',
    message: `the volume is still attached to ${from}${names.length > 0 ? `, where it is used by ${names.join(', ')}` : ''}, and can be attached to ${to} only after it is detached`,
    fixes: users.map(({ metadata }) =>
      fix('delete the pod that uses the volume', `kubectl -n ${metadata.namespace} delete pod ${metadata.name}`),
    ),
    ...(node.state === 'ready' ? {} : { children: [node] }),
  }
}
