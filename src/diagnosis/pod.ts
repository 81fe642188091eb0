// Diagnoses a pod: its deletion, its scheduling, the claims it uses, the attachment and mount of its volumes, its containers.
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import { diagnoseClaim } from './claim.ts'
import { ageSeconds, type Cluster, podSubject, type StoredPod } from './cluster.ts'
import { isBeingDeleted } from './deletion.ts'
import { type Diagnosis, destructiveFix, fix, type Subject, worstState } from './diagnosis.ts'
import { diagnoseAnswer } from './last-answer.ts'
import { diagnoseMissingClaim } from './missing-claim.ts'
import { diagnoseNodeHealth } from './node-health.ts'
import { diagnoseScheduling } from './scheduling.ts'

export function diagnosePod(pod: StoredPod, cluster: Cluster): Diagnosis {
  const subject = podSubject(pod)
  const phase = pod.status?.phase ?? 'Pending'
  if (phase === 'Succeeded' || phase === 'Failed') {
    const message = `the pod has ended: ${pod.status?.message || pod.status?.reason || phase}`
    return { subject, state: phase === 'Failed' ? 'failed' : 'ready', reason: phase, message }
  }
  if (isBeingDeleted(pod)) return diagnoseDeletion(pod, cluster)
  if (isReady(pod)) {
    const message = `the pod runs on ${pod.spec?.nodeName}`
    return { subject, state: 'ready', reason: 'Running', message }
  }
  return pod.spec?.nodeName ? diagnosePlaced(pod, pod.spec.nodeName, cluster) : diagnoseUnplaced(pod, cluster)
}

const isReady = ({ status }: StoredPod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false

function diagnoseDeletion(pod: StoredPod, cluster: Cluster): Diagnosis {
  const subject = podSubject(pod)
  const { nodeName } = pod.spec ?? {}
  const node = nodeName === undefined ? undefined : diagnoseNodeHealth(nodeName, cluster)
  const finalizers = pod.metadata.finalizers ?? []
  const age = ageSeconds(pod.metadata.deletionTimestamp, cluster.snapshot.nowMs)
  const holder = finalizers.length > 0 ? `the finalizers ${finalizers.join(', ')}` : `the node agent of ${nodeName}`
  const isLost = node !== undefined && node.state !== 'ready'
  return {
    subject,
    state: isLost ? 'failed' : 'waiting',
    reason: 'BeingDeleted',
    message: `the deletion was requested and waits for ${holder}`,
    ...(age === undefined ? {} : { numbers: { ageSeconds: age } }),
    ...(isLost
      ? {
          fixes: [
            destructiveFix(
              'if the node will not return: remove the pod without waiting; a process that still runs can damage its volume',
              `kubectl -n ${subject.namespace} delete pod ${subject.name} --force --grace-period=0`,
            ),
          ],
          children: [node],
        }
      : {}),
  }
}

function diagnoseClaims(pod: StoredPod, cluster: Cluster): Diagnosis[] {
  return claimsOfPod(pod).map((key) => {
    const claim = cluster.caches.claims.get(key)
    if (claim) return diagnoseClaim(claim, cluster, { isOfPod: true })
    const name = key.slice(key.indexOf('/') + 1)
    return diagnoseMissingClaim(
      { kind: 'PersistentVolumeClaim', namespace: pod.metadata.namespace ?? '', name },
      [pod],
      cluster,
    )
  })
}

function diagnoseUnplaced(pod: StoredPod, cluster: Cluster): Diagnosis {
  const scheduling = diagnoseScheduling(pod, cluster)
  // A claim that waits for the pod adds nothing to the pod's own causes.
  const isCause = ({ state, reason }: Diagnosis) =>
    state !== 'ready' && !(state === 'waiting' && reason === 'WaitForPodScheduled')
  const claims = diagnoseClaims(pod, cluster).filter(isCause)
  return { ...scheduling, ...withChildren([...claims, ...(scheduling.children ?? [])]) }
}

const withChildren = (children: readonly Diagnosis[]) => (children.length > 0 ? { children } : {})

function diagnosePlaced(pod: StoredPod, nodeName: string, cluster: Cluster): Diagnosis {
  const children = [
    diagnoseNodeHealth(nodeName, cluster),
    ...diagnoseClaims(pod, cluster),
    ...diagnoseAttachments(pod, nodeName, cluster),
    ...diagnoseEvents(pod, cluster),
    ...diagnoseContainers(pod),
  ].filter(({ state }) => state !== 'ready')
  const state = worstState(['waiting', ...children.map((child) => child.state)])
  const [cause] = children
  return {
    subject: podSubject(pod),
    state,
    reason: cause?.reason ?? 'Starting',
    message: cause
      ? `the pod is on ${nodeName} and does not run: ${cause.message}`
      : `the node agent of ${nodeName} is starting the pod`,
    ...withChildren(children),
  }
}

function diagnoseAttachments(pod: StoredPod, nodeName: string, cluster: Cluster): Diagnosis[] {
  return claimsOfPod(pod).flatMap((key): Diagnosis[] => {
    const volumeName = cluster.caches.claims.get(key)?.spec?.volumeName
    const volume = volumeName ? cluster.caches.volumes.get(volumeName) : undefined
    const driver = volume?.spec?.csi?.driver
    if (!volume || !driver || cluster.caches.drivers.get(driver)?.spec.attachRequired === false) return []
    const attachments = cluster.snapshot.attachments.filter(
      ({ spec }) => spec.source.persistentVolumeName === volume.metadata.name,
    )
    const own = attachments.find(({ spec }) => spec.nodeName === nodeName)
    if (own?.status?.attached) return []
    const subject: Subject = { kind: 'PersistentVolume', name: volume.metadata.name }
    const other = attachments.find(({ spec }) => spec.nodeName !== nodeName)
    if (other && !volume.spec?.accessModes?.some((mode) => mode.endsWith('Many')))
      return [diagnoseOtherNode(subject, key, other.spec.nodeName, nodeName, cluster)]
    const error = own?.status?.attachError?.message
    if (!error) {
      const message = `the attacher of ${driver} attaches the volume to ${nodeName}`
      return [{ subject, state: 'waiting', reason: own ? 'Attaching' : 'NotAttached', message }]
    }
    const answer = diagnoseAnswer(error, 'attach', { subject: { kind: 'VolumeAttachment', name: own.metadata.name } })
    const message = `the volume could not be attached to ${nodeName}`
    return [{ subject, state: 'failed', reason: 'AttachFailed', message, children: [answer] }]
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
      fix('end the pod that uses it', `kubectl -n ${metadata.namespace} delete pod ${metadata.name}`),
    ),
    ...(node.state === 'ready' ? {} : { children: [node] }),
  }
}

const MOUNT_REASONS = ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume', 'FailedCreatePodSandBox']

function diagnoseEvents(pod: StoredPod, cluster: Cluster): Diagnosis[] {
  const event = cluster
    .eventsOf(podSubject(pod))
    .find(({ type, reason = '' }) => type === 'Warning' && MOUNT_REASONS.includes(reason))
  if (!event) return []
  const component = event.reportingComponent || event.source?.component || 'kubelet'
  const answer = diagnoseAnswer(event.message ?? '', 'attach', { subject: { kind: 'Component', name: component } })
  return [{ ...answer, reason: event.reason ?? answer.reason }]
}

function diagnoseContainers({ metadata, status }: StoredPod): Diagnosis[] {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  return statuses.flatMap(({ name, state }): Diagnosis[] => {
    const { reason, message } = state?.waiting ?? {}
    if (!reason || reason === 'ContainerCreating' || reason === 'PodInitializing') return []
    const fixes = [
      fix(
        'see the log of the container',
        `kubectl -n ${metadata.namespace} logs ${metadata.name} -c ${name} --previous`,
      ),
    ]
    return [{ subject: { kind: 'Container', name }, state: 'failed', reason, message: message || reason, fixes }]
  })
}
