// Diagnoses a claim or volume whose deletion waits for finalizers: names each finalizer and what its controller waits for.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { protectsClaim } from '../controllers/protection/index.ts'
import {
  CLAIM_PROTECTION_FINALIZER,
  EXTERNAL_PROVISIONER_FINALIZER,
  IN_PROCESS_PROVISIONER_FINALIZER,
  VOLUME_PROTECTION_FINALIZER,
} from '../volumes/names.ts'
import { INTENT_PREFIX } from '../volumes/provisioning-intent.ts'
import { ageSeconds, type Claim, type Cluster, claimSubject, podSubject } from './cluster.ts'
import { type Diagnosis, destructiveFix, fix, type Subject } from './diagnosis.ts'
import { currentOperation, lastFailure } from './last-failure.ts'

const ATTACHER_PREFIX = 'external-attacher/'

export function diagnoseClaimDeletion(claim: Claim, cluster: Cluster): Diagnosis {
  const subject = claimSubject(claim)
  const children = (claim.metadata.finalizers ?? []).map((finalizer) => {
    if (finalizer === CLAIM_PROTECTION_FINALIZER) return diagnoseProtection(claim, cluster)
    if (finalizer.startsWith(INTENT_PREFIX)) return diagnoseIntent(claim, finalizer, cluster)
    return diagnoseOtherFinalizer(subject, finalizer, 'pvc')
  })
  return beingDeleted(subject, claim.metadata.deletionTimestamp, children, cluster)
}

export function diagnoseVolumeDeletion(volume: Readonly<Stored<PersistentVolume>>, cluster: Cluster): Diagnosis {
  const subject: Subject = { kind: 'PersistentVolume', name: volume.metadata.name }
  const children = (volume.metadata.finalizers ?? []).map((finalizer) => {
    if (finalizer === VOLUME_PROTECTION_FINALIZER) return diagnoseBoundVolume(volume)
    if (finalizer === EXTERNAL_PROVISIONER_FINALIZER || finalizer === IN_PROCESS_PROVISIONER_FINALIZER)
      return diagnoseStorageDeletion(volume, finalizer, cluster)
    if (finalizer.startsWith(ATTACHER_PREFIX)) return diagnoseAttached(volume, finalizer, cluster)
    return diagnoseOtherFinalizer(subject, finalizer, 'pv')
  })
  return beingDeleted(subject, volume.metadata.deletionTimestamp, children, cluster)
}

function beingDeleted(
  subject: Subject,
  deletionTimestamp: string | undefined,
  children: readonly Diagnosis[],
  cluster: Cluster,
): Diagnosis {
  const age = ageSeconds(deletionTimestamp, cluster.snapshot.nowMs)
  return {
    subject,
    state: 'waiting',
    reason: 'BeingDeleted',
    message: `the deletion was requested and waits for ${children.length} finalizer${children.length === 1 ? '' : 's'}`,
    ...(age === undefined ? {} : { numbers: { ageSeconds: age } }),
    children,
  }
}

const finalizerSubject = (name: string): Subject => ({ kind: 'Finalizer', name })

function diagnoseProtection(claim: Claim, cluster: Cluster): Diagnosis {
  const users = cluster.caches.pods.list(claim.metadata.namespace).filter((pod) => protectsClaim(pod, claim))
  const subject = finalizerSubject(CLAIM_PROTECTION_FINALIZER)
  if (users.length === 0) {
    const message = 'no pod uses the claim: the claim protection controller removes the finalizer'
    return { subject, state: 'waiting', reason: 'WaitingForController', message }
  }
  const children = users.map((pod): Diagnosis => {
    const { namespace = '', name } = podSubject(pod)
    return {
      subject: podSubject(pod),
      state: 'failed',
      reason: 'UsesClaim',
      message: `the pod on node ${pod.spec?.nodeName} uses the claim`,
      fixes: [fix('delete the pod', `kubectl -n ${namespace} delete pod ${name}`)],
    }
  })
  const message = `the claim protection controller removes the finalizer when no pod uses the claim`
  return { subject, state: 'waiting', reason: 'ClaimInUse', message, numbers: { pods: users.length }, children }
}

function diagnoseIntent(claim: Claim, finalizer: string, cluster: Cluster): Diagnosis {
  const reasons = ['ProvisioningFailed', 'ProvisioningCleanupFailed']
  const cause =
    lastFailure(cluster, claimSubject(claim), 'create', { reasons }) ??
    currentOperation(cluster, claimSubject(claim), 'create')
  const { namespace = '', name } = claimSubject(claim)
  return {
    subject: finalizerSubject(finalizer),
    state: 'waiting',
    reason: 'ProvisioningUnfinished',
    message: 'the provisioner removes the finalizer when it knows whether it has created a volume',
    fixes: [
      destructiveFix(
        'if the storage never responds: delete the volume there, then remove the finalizer',
        `kubectl -n ${namespace} edit pvc ${name}`,
      ),
    ],
    ...(cause ? { children: [cause] } : {}),
  }
}

function diagnoseBoundVolume({ status, spec }: Readonly<PersistentVolume>): Diagnosis {
  const subject = finalizerSubject(VOLUME_PROTECTION_FINALIZER)
  const { namespace = '', name = '' } = spec?.claimRef ?? {}
  if (status?.phase !== 'Bound') {
    const message = 'the volume is not bound: the volume protection controller removes the finalizer'
    return { subject, state: 'waiting', reason: 'WaitingForController', message }
  }
  const isDeleted = spec?.persistentVolumeReclaimPolicy === 'Delete'
  return {
    subject,
    state: 'failed',
    reason: 'VolumeBound',
    message: `the volume is bound to the claim ${namespace}/${name}, and is deleted only after the claim`,
    fixes: [
      (isDeleted ? destructiveFix : fix)(
        `delete the claim${isDeleted ? ', which also deletes the data' : ''}`,
        `kubectl -n ${namespace} delete pvc ${name}`,
      ),
    ],
  }
}

function diagnoseStorageDeletion(
  volume: Readonly<Stored<PersistentVolume>>,
  finalizer: string,
  cluster: Cluster,
): Diagnosis {
  const { spec, metadata } = volume
  const driver = spec?.csi?.driver ?? metadata.annotations?.['pv.kubernetes.io/provisioned-by'] ?? 'the provisioner'
  const subject: Subject = { kind: 'PersistentVolume', name: metadata.name }
  const failure = lastFailure(cluster, subject, 'delete', { reasons: ['VolumeFailedDelete'] })
  return {
    subject: finalizerSubject(finalizer),
    state: failure ? 'failed' : 'waiting',
    reason: 'StorageExists',
    message: `the provisioner of ${driver} removes the finalizer after it has deleted the storage`,
    ...(failure ? { children: [failure] } : {}),
  }
}

function diagnoseAttached(
  { metadata }: Readonly<Stored<PersistentVolume>>,
  finalizer: string,
  cluster: Cluster,
): Diagnosis {
  const attachments = cluster.snapshot.attachments.filter(
    ({ spec }) => spec.source.persistentVolumeName === metadata.name,
  )
  const nodes = attachments.map(({ spec }) => spec.nodeName)
  return {
    subject: finalizerSubject(finalizer),
    state: 'waiting',
    reason: nodes.length > 0 ? 'VolumeAttached' : 'WaitingForController',
    message:
      nodes.length > 0
        ? `the attacher removes the finalizer when the volume is detached from ${nodes.join(', ')}`
        : 'the volume is not attached: the attacher removes the finalizer',
    numbers: { attachments: nodes.length },
  }
}

function diagnoseOtherFinalizer({ namespace, name }: Subject, finalizer: string, kind: 'pvc' | 'pv'): Diagnosis {
  const command = `kubectl ${namespace ? `-n ${namespace} ` : ''}edit ${kind} ${name}`
  return {
    subject: finalizerSubject(finalizer),
    state: 'failed',
    reason: 'UnknownFinalizer',
    message: 'the component that has set the finalizer must remove it',
    fixes: [
      fix('check that this component runs'),
      destructiveFix('if it was uninstalled, remove the finalizer; the component then does not clean up', command),
    ],
  }
}

export const isBeingDeleted = ({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
  metadata.deletionTimestamp !== undefined
