// Diagnoses a volume by its phase: available, bound, released, failed or being deleted.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { diagnoseClaim } from './claim.ts'
import type { Cluster } from './cluster.ts'
import { diagnoseVolumeDeletion, isBeingDeleted } from './deletion.ts'
import { type Diagnosis, destructiveFix, fix, type Subject } from './diagnosis.ts'
import { lastFailure } from './last-failure.ts'

type Volume = Readonly<Stored<PersistentVolume>>

export function diagnoseVolume(volume: Volume, cluster: Cluster): Diagnosis {
  if (isBeingDeleted(volume)) return diagnoseVolumeDeletion(volume, cluster)
  const subject: Subject = { kind: 'PersistentVolume', name: volume.metadata.name }
  switch (volume.status?.phase) {
    case 'Bound':
      return diagnoseBound(volume, subject, cluster)
    case 'Available':
      return { subject, state: 'ready', reason: 'Available', message: 'the volume is free for a claim' }
    case 'Released':
    case 'Failed':
      return diagnoseReleased(volume, subject, cluster)
    default:
      return { subject, state: 'waiting', reason: 'Pending', message: 'the binding controller has not set a phase yet' }
  }
}

function diagnoseBound({ spec }: Volume, subject: Subject, cluster: Cluster): Diagnosis {
  const { namespace = '', name = '' } = spec?.claimRef ?? {}
  const claim = cluster.caches.claims.get({ namespace, name })
  const message = `the volume is bound to the claim ${namespace}/${name}`
  if (!claim) return { subject, state: 'ready', reason: 'Bound', message }
  const child = diagnoseClaim(claim, cluster)
  return {
    subject,
    state: child.state,
    reason: child.state === 'ready' ? 'Bound' : child.reason,
    message,
    children: [child],
  }
}

function diagnoseReleased({ spec, status, metadata }: Volume, subject: Subject, cluster: Cluster): Diagnosis {
  const { namespace = '', name = '' } = spec?.claimRef ?? {}
  const release = `the claim ${namespace}/${name} of the volume was deleted`
  const reasons = ['VolumeFailedDelete', 'VolumeFailedRecycle']
  const failure = lastFailure(cluster, subject, 'delete', { reasons })
  const children = failure ? { children: [failure] } : {}
  if (spec?.persistentVolumeReclaimPolicy === 'Delete') {
    const isFailed = status?.phase === 'Failed' || failure !== undefined
    const message = `${release}; the provisioner deletes the storage${isFailed ? ', and has failed' : ''}`
    return {
      subject,
      state: isFailed ? 'failed' : 'waiting',
      reason: isFailed ? 'DeletionFailed' : 'Deleting',
      message,
      ...children,
    }
  }
  return {
    subject,
    state: 'failed',
    reason: 'Released',
    message: `${release}; ${describeReclaimPolicy(spec?.persistentVolumeReclaimPolicy)}`,
    fixes: [
      fix(
        'give the volume with its data to a new claim',
        `kubectl patch pv ${metadata.name} -p '{"spec":{"claimRef":null}}'`,
      ),
      destructiveFix(
        'or delete the volume and its storage',
        `kubectl patch pv ${metadata.name} -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'`,
      ),
    ],
    ...children,
  }
}

/** Describes a policy other than Delete. */
const describeReclaimPolicy = (policy = 'Retain'): string =>
  policy === 'Retain'
    ? 'the reclaim policy Retain keeps the data, and no claim is bound to the volume'
    : `the reclaim policy ${policy} is not supported, so the data is retained and no claim is bound to the volume`
