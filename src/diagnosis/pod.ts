// Diagnoses a pod: its deletion, its scheduling, the claims it uses, the attachment and mount of its volumes, its containers.
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import { diagnoseAttachments } from './attachment.ts'
import { diagnoseClaim } from './claim.ts'
import { ageSeconds, type Cluster, podSubject, type StoredPod } from './cluster.ts'
import { isBeingDeleted } from './deletion.ts'
import { type Diagnosis, destructiveFix, type Fix, fix, worstState } from './diagnosis.ts'
import { diagnoseFailure } from './last-failure.ts'
import { diagnoseMissingClaim } from './missing-claim.ts'
import { diagnoseNodeHealth } from './node-health.ts'
import { diagnoseOperation, findOperations } from './operations.ts'
import { diagnoseScheduling } from './scheduling/scheduling.ts'

export function diagnosePod(pod: StoredPod, cluster: Cluster): Diagnosis {
  const subject = podSubject(pod)
  const phase = pod.status?.phase ?? 'Pending'
  if (phase === 'Succeeded' || phase === 'Failed') {
    const message = `the pod has terminated: ${pod.status?.message || pod.status?.reason || phase}`
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
    ...diagnosePublishing(pod, cluster),
    ...diagnoseContainers(pod),
  ].filter(({ state }) => state !== 'ready')
  const state = worstState(['waiting', ...children.map((child) => child.state)])
  const [cause] = children
  return {
    subject: podSubject(pod),
    state,
    reason: cause?.reason ?? 'Starting',
    message: cause ? `the pod is on ${nodeName} and is not ready` : `the node agent of ${nodeName} is starting the pod`,
    ...withChildren(children),
  }
}

const MOUNT_REASONS = ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume', 'FailedCreatePodSandBox']

/** Diagnoses the mounts of the pod from the node agent's operation on a Stowage server, or else from its newest warning. */
function diagnosePublishing(pod: StoredPod, cluster: Cluster): Diagnosis[] {
  const subject = podSubject(pod)
  const [operation] = findOperations(cluster, subject, ['Publish', 'ExpandNode'])
  if (operation) return [diagnoseOperation(operation, 'attach', cluster)]
  const event = cluster
    .eventsOf(subject)
    .find(({ type, reason = '' }) => type === 'Warning' && MOUNT_REASONS.includes(reason))
  if (!event) return []
  const component = event.reportingComponent || event.source?.component || 'kubelet'
  const failure = diagnoseFailure(event.message ?? '', 'attach', { subject: { kind: 'Component', name: component } })
  return [{ ...failure, reason: event.reason ?? failure.reason }]
}

function diagnoseContainers({ metadata, status }: StoredPod): Diagnosis[] {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  return statuses.flatMap(({ name, state }): Diagnosis[] => {
    const { reason, message } = state?.waiting ?? {}
    if (!reason || reason === 'ContainerCreating' || reason === 'PodInitializing') return []
    const fixes = [reason === 'CrashLoopBackOff' ? readLog(metadata, name) : readEvents(metadata)]
    return [{ subject: { kind: 'Container', name }, state: 'failed', reason, message: message || reason, fixes }]
  })
}

type Metadata = StoredPod['metadata']

const readLog = ({ namespace, name }: Metadata, container: string): Fix =>
  fix('see the log of the container', `kubectl -n ${namespace} logs ${name} -c ${container} --previous`)

/** With a reason such as ImagePullBackOff, the container has not started, and so has no log. */
const readEvents = ({ namespace, name }: Metadata): Fix =>
  fix('see the events of the pod', `kubectl -n ${namespace} describe pod ${name}`)
