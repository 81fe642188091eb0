// Diagnoses a pod without a node: its scheduling gates, the plugins that reject the pod for all nodes or for each node, and
// preemption.
import type { RejectionDetail } from '../../scheduler/framework/status.ts'
import { type NodeEvaluation, type PodEvaluation, SCHEDULER_NAMES } from '../../scheduler/index.ts'
import { ageSeconds, type Cluster, podSubject, type StoredPod } from '../cluster.ts'
import { type Diagnosis, type Fix, fix, type Subject } from '../diagnosis.ts'
import { formatAge } from '../format-age.ts'
import { attemptNumbers, diagnoseOperation, findOperations, hasFailed } from '../operations.ts'
import { diagnosePreemption } from './preemption.ts'

/** The lists without which an evaluation would be wrong. */
const EVALUATED_LISTS = ['pods', 'nodes', 'claims', 'volumes', 'classes', 'drivers', 'csiNodes', 'attachments'] as const

export function diagnoseScheduling(pod: StoredPod, cluster: Cluster): Diagnosis {
  const subject = podSubject(pod)
  const gates = pod.spec?.schedulingGates ?? []
  if (gates.length > 0) {
    const names = gates.map(({ name }) => name).join(', ')
    const message = `the pod is not scheduled until the controllers that set its scheduling gates remove them: ${names}`
    return { subject, state: 'waiting', reason: 'SchedulingGated', message }
  }
  const missingRules = cluster.missingRules(...EVALUATED_LISTS)
  if (missingRules.length > 0) return diagnoseFromCondition(pod, missingRules)
  const evaluation = cluster.evaluate(pod)
  if (evaluation.message === undefined) return diagnoseFitting(pod, evaluation, cluster)
  const { podRejection, nodes } = evaluation
  if (podRejection) {
    const { type, message } = podRejection.status.reasons[0]!
    return { subject, state: 'failed', reason: type, message: `no node is considered: ${message}` }
  }
  if (nodes.length === 0) {
    const fixes = [fix('add a node', 'kubectl get nodes')]
    return { subject, state: 'failed', reason: 'NoNodes', message: 'the cluster has no nodes', fixes }
  }
  const preemption = diagnosePreemption(pod, evaluation.preemption, cluster)
  const children = [
    ...(preemption?.children ?? []),
    ...diagnoseCapacityReports(nodes, cluster),
    ...nodes.map((node) => diagnoseRejectedNode(node, cluster)),
  ]
  const [operation] = findOperations(cluster, subject, ['Schedule'])
  return {
    subject,
    state: preemption?.state ?? 'failed',
    reason: preemption?.reason ?? 'NoNodeFits',
    message: evaluation.message,
    numbers: {
      nodes: nodes.length,
      fitting: 0,
      ...(operation ? attemptNumbers(operation, cluster.snapshot.nowMs) : {}),
    },
    ...(preemption?.fixes ? { fixes: preemption.fixes } : {}),
    children,
  }
}

/** Diagnoses failed ReportCapacity operations, one per class, for classes without a capacity report about a node. */
function diagnoseCapacityReports(nodes: readonly NodeEvaluation[], cluster: Cluster): Diagnosis[] {
  const details = nodes.flatMap(({ rejection }) => rejection?.details ?? [])
  const classNames = details.filter(({ type }) => type === 'NoCapacityReport').map(({ numbers }) => numbers?.class)
  return [...new Set(classNames)].flatMap((className) =>
    findOperations(cluster, { kind: 'StorageClass', name: String(className) }, ['ReportCapacity'])
      .filter(hasFailed)
      .slice(0, 1)
      .map((operation) => diagnoseOperation(operation, 'attach', cluster)),
  )
}

function diagnoseFromCondition(pod: StoredPod, missingRules: readonly string[]): Diagnosis {
  const condition = scheduledCondition(pod)
  const report = condition?.message ? `; the scheduler reported: ${condition.message}` : ''
  return {
    subject: podSubject(pod),
    state: 'unknown',
    reason: 'MissingRights',
    message: `the nodes cannot be evaluated without permission to ${missingRules.join(', ')}${report}`,
    fixes: [fix('run the command as a user who may read these objects, such as a viewer of the cluster')],
  }
}

const scheduledCondition = ({ status }: StoredPod) =>
  status?.conditions?.find(({ type, status: value }) => type === 'PodScheduled' && value !== 'True')

function diagnoseFitting(pod: StoredPod, { nodes }: PodEvaluation, cluster: Cluster): Diagnosis {
  const fitting = nodes.filter(({ rejection }) => !rejection)
  const schedulerName = pod.spec?.schedulerName ?? SCHEDULER_NAMES[0]
  const numbers = { nodes: nodes.length, fitting: fitting.length }
  const subject = podSubject(pod)
  const age = ageSeconds(pod.metadata.creationTimestamp, cluster.snapshot.nowMs) ?? 0
  const names = fitting.slice(0, NODE_NAMES_MAX).map(({ nodeName }) => nodeName)
  const places = `${names.join(', ')}${fitting.length > names.length ? ` and ${fitting.length - names.length} more` : ''}`
  const report = scheduledCondition(pod)?.message
  const [operation] = findOperations(cluster, subject, ['Schedule'])
  return {
    subject,
    state: 'waiting',
    reason: 'WaitingForScheduler',
    message:
      `the pod fits on ${places}, and has waited for the scheduler ${JSON.stringify(schedulerName)} for ${age} s` +
      (report ? `, which last reported: ${report}` : ''),
    numbers,
    ...(operation
      ? { children: [diagnoseOperation(operation, 'attach', cluster)] }
      : { fixes: [fix(`check that a scheduler with the name ${schedulerName} runs`)] }),
  }
}

const NODE_NAMES_MAX = 3

function diagnoseRejectedNode({ nodeName, rejection }: NodeEvaluation, cluster: Cluster): Diagnosis {
  const subject: Subject = { kind: 'Node', name: nodeName }
  if (!rejection) return { subject, state: 'ready', reason: 'Fits', message: 'the pod fits' }
  const details = rejection.details.map((detail) => withReportAge(detail, nodeName, cluster))
  const [reason] = rejection.status.reasons
  const [detail] = details
  const messages = details.map(({ message }) => message)
  const fixes = [
    ...suggestFixes(detail?.type ?? reason!.type, nodeName, detail, cluster),
    ...taintFixes(nodeName, cluster, rejection),
  ]
  return {
    subject,
    state: 'failed',
    reason: detail?.type ?? reason!.type,
    message: messages.length > 0 ? messages.join('; ') : reason!.message,
    numbers: { filter: rejection.plugin, ...detail?.numbers },
    ...(fixes.length > 0 ? { fixes } : {}),
  }
}

/** Adds the age of the capacity report, and marks the report of a driver that has left the node as stale. */
function withReportAge(detail: RejectionDetail, nodeName: string, cluster: Cluster): RejectionDetail {
  const { report: reportKey, driver } = detail.numbers ?? {}
  if (reportKey === undefined) return detail
  const report = cluster.caches.capacities?.get(String(reportKey))
  const times = (report?.metadata.managedFields ?? []).map(({ time }) => time ?? '').sort()
  const age = ageSeconds(times.at(-1) || report?.metadata.creationTimestamp, cluster.snapshot.nowMs)
  const numbers = { ...detail.numbers, ...(age === undefined ? {} : { reportAgeSeconds: age }) }
  const aged = {
    ...detail,
    numbers,
    message: `${detail.message}${age === undefined ? '' : ` (reported ${formatAge(age)} ago)`}`,
  }
  if (isRegistered(String(driver), nodeName, cluster)) return aged
  const message = `${aged.message}; the report is stale, because the driver ${driver} is not registered on the node`
  return { ...aged, type: 'StaleCapacityReport', message }
}

function suggestFixes(
  type: string,
  nodeName: string,
  detail: RejectionDetail | undefined,
  cluster: Cluster,
): readonly Fix[] {
  const driver = String(detail?.numbers?.driver ?? '')
  const [namespace = '', claim = ''] = detail?.claimKey?.split('/') ?? []
  switch (type) {
    case 'NodeUnschedulable':
      return [fix('allow pods on the node', `kubectl uncordon ${nodeName}`)]
    case 'NotEnoughSpace':
      return [
        fix(`add storage for the driver ${driver}, or delete volumes that are not needed`),
        fix(
          `request at most ${detail?.numbers?.free}: recreate the claim, which has no volume yet`,
          recreate(namespace, claim),
        ),
      ]
    case 'MaximumVolumeSizeExceeded':
      return [
        fix(
          `request at most ${detail?.numbers?.maximumVolumeSize}: recreate the claim, which has no volume yet`,
          recreate(namespace, claim),
        ),
      ]
    case 'NoCapacityReport':
      if (isRegistered(driver, nodeName, cluster)) {
        const className = detail?.numbers?.class
        return [
          fix(
            `the driver is registered: check the parameters of the class, and the log of the provisioner`,
            `kubectl describe storageclass ${className}`,
          ),
        ]
      }
      return [runDriver(driver, nodeName)]
    case 'StaleCapacityReport':
    case 'DriverMissing':
      return [runDriver(driver, nodeName)]
    case 'TopologyLabelsMissing':
      return [
        fix(
          'restart the driver on the node, which sets the label again, or set it',
          `kubectl label node ${nodeName} KEY=VALUE`,
        ),
      ]
    case 'NoVolumeAvailable':
      return [fix('create a volume of the class that the node can use, or use a class with a provisioner')]
    case 'TooManyVolumes':
      return [fix('delete a pod with volumes of the driver on the node, or add a node')]
    case 'InsufficientResource':
    case 'TooManyPods':
      return [fix('lower the requests of the pod, delete other pods of the node, or add a node')]
    case 'NodeAffinityMismatch':
      return [fix('change the node selector of the pod, or label the node', `kubectl label node ${nodeName} KEY=VALUE`)]
    default:
      return []
  }
}

const isRegistered = (driver: string, nodeName: string, { caches }: Cluster): boolean =>
  caches.csiNodes.get(nodeName)?.spec.drivers.some(({ name }) => name === driver) ?? false

const runDriver = (driver: string, nodeName: string): Fix =>
  fix(
    `run the driver ${driver} on the node, and a provisioner that reports its capacity`,
    `kubectl get csinode ${nodeName} -o jsonpath='{.spec.drivers[*].name}'`,
  )

const recreate = (namespace: string, claim: string): string => `kubectl -n ${namespace} delete pvc ${claim}`

/** Taints that Kubernetes sets describe a problem of the node, so removing them does not help. */
function taintFixes(nodeName: string, cluster: Cluster, { plugin }: { readonly plugin: string }): readonly Fix[] {
  if (plugin !== 'TaintToleration') return []
  const taints = cluster.caches.nodes.get(nodeName)?.spec?.taints ?? []
  return taints
    .filter(({ effect }) => effect !== 'PreferNoSchedule')
    .map(({ key, effect }) =>
      key.startsWith('node.kubernetes.io/')
        ? fix('find out why the node has the taint', `stowage why node/${nodeName}`)
        : fix('add a toleration to the pod, or remove the taint', `kubectl taint node ${nodeName} ${key}:${effect}-`),
    )
}
