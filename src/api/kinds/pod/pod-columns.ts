// Defines the table columns of pods, with the status summary that kubectl shows and the numbers of ready containers and
// restarts.
import { ageColumn, ageOf, nameColumn } from '../../columns.ts'
import type { Column } from '../../kind.ts'
import type { Infer } from '../../schema.ts'
import { hasTerminated } from './has-terminated.ts'
import type { containerStatus, Pod } from './pod-schema.ts'

type ContainerStatus = Infer<typeof containerStatus>

interface Summary {
  /** Such as Running, Pending, Init:0/2, CrashLoopBackOff or Terminating. */
  status: string
  ready: number
  total: number
  restarts: number
  /** The time at which a restarted container last terminated. */
  lastRestart: string | undefined
}

export const podColumns: readonly Column<Pod>[] = [
  nameColumn,
  {
    name: 'Ready',
    type: 'string',
    doc: 'Number of ready containers, out of the total.',
    cell: (pod) => {
      const { ready, total } = summarize(pod)
      return `${ready}/${total}`
    },
  },
  { name: 'Status', type: 'string', doc: 'Summary of the state of the pod.', cell: (pod) => summarize(pod).status },
  {
    name: 'Restarts',
    type: 'string',
    doc: 'Number of container restarts and time of the last one.',
    cell: (pod, { nowMs }) => {
      const { restarts, lastRestart } = summarize(pod)
      return restarts !== 0 && lastRestart ? `${restarts} (${ageOf(lastRestart, nowMs)} ago)` : String(restarts)
    },
  },
  ageColumn,
  wideColumn('IP', 'IP address of the pod.', (pod) => pod.status?.podIPs?.[0]?.ip),
  wideColumn('Node', 'Node of the pod.', (pod) => pod.spec?.nodeName),
  wideColumn('Nominated Node', 'Node nominated by preemption.', (pod) => pod.status?.nominatedNodeName),
  wideColumn('Readiness Gates', 'Number of readiness gates that are met, out of the total.', formatReadinessGates),
]

function wideColumn(name: string, doc: string, cell: (pod: Pod) => string | undefined): Column<Pod> {
  return { name, type: 'string', wide: true, doc, cell: (pod) => cell(pod) || '<none>' }
}

function formatReadinessGates({ spec, status }: Pod): string | undefined {
  const gates = spec?.readinessGates ?? []
  if (gates.length === 0) return undefined
  const conditions = status?.conditions ?? []
  const metGates = gates.filter(({ conditionType }) => {
    return conditions.find(({ type }) => type === conditionType)?.status === 'True'
  })
  return `${metGates.length}/${gates.length}`
}

/** Summarizes the state of a pod and its containers. */
function summarize(pod: Pod): Summary {
  const { spec, status = {} } = pod
  const conditions = status.conditions ?? []
  const isGated = conditions.some(({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated')
  const sidecars = new Set(
    spec?.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  )
  const summary: Summary = {
    status: isGated ? 'SchedulingGated' : status.reason || status.phase || '',
    ready: 0,
    total: (spec?.containers.length ?? 0) + sidecars.size,
    restarts: 0,
    lastRestart: undefined,
  }
  const isInitializing = summarizeInitContainers(pod, sidecars, summary)
  const isInitialized = conditions.find(({ type }) => type === 'Initialized')?.status === 'True'
  if (!isInitializing || isInitialized) summarizeContainers(pod, sidecars, summary)

  if (pod.metadata.deletionTimestamp && status.reason === 'NodeLost') summary.status = 'Unknown'
  else if (pod.metadata.deletionTimestamp && !hasTerminated(pod)) summary.status = 'Terminating'
  return summary
}

/** Returns whether an init container has not completed, or a sidecar has not started. The first one determines the status. */
function summarizeInitContainers({ spec, status }: Pod, sidecars: ReadonlySet<string>, summary: Summary): boolean {
  for (const [index, container] of (status?.initContainerStatuses ?? []).entries()) {
    countRestarts(container, summary)
    const { terminated, waiting } = container.state ?? {}
    if (terminated?.exitCode === 0) continue
    if (sidecars.has(container.name) && container.started) {
      if (container.ready) summary.ready++
      continue
    }
    if (terminated) summary.status = `Init:${terminationReason(terminated)}`
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') summary.status = `Init:${waiting.reason}`
    else summary.status = `Init:${index}/${spec?.initContainers?.length ?? 0}`
    return true
  }
  return false
}

function summarizeContainers({ status }: Pod, sidecars: ReadonlySet<string>, summary: Summary): void {
  summary.restarts = 0 // restarts of init containers other than sidecars are not counted
  summary.lastRestart = undefined
  for (const container of status?.initContainerStatuses ?? []) {
    if (sidecars.has(container.name)) countRestarts(container, summary)
  }
  let isAnyRunning = false
  let failureReason = ''
  for (const container of (status?.containerStatuses ?? []).toReversed()) {
    countRestarts(container, summary)
    const { waiting, terminated, running: runningState } = container.state ?? {}
    if (waiting?.reason) summary.status = waiting.reason
    else if (terminated) {
      summary.status = terminationReason(terminated)
      if (terminated.exitCode !== 0) failureReason = summary.status
    } else if (container.ready && runningState) {
      isAnyRunning = true
      summary.ready++
    }
  }
  if (summary.status !== 'Completed') return
  const isReady = status?.conditions?.some(
    ({ type, status: conditionStatus }) => type === 'Ready' && conditionStatus === 'True',
  )
  if (isAnyRunning && isReady) summary.status = 'Running'
  else if (failureReason) summary.status = failureReason
  else if (isAnyRunning) summary.status = 'NotReady'
}

function countRestarts({ restartCount, lastState }: ContainerStatus, summary: Summary): void {
  summary.restarts += restartCount
  const finishedAt = lastState?.terminated?.finishedAt
  if (finishedAt && finishedAt > (summary.lastRestart ?? '')) summary.lastRestart = finishedAt
}

function terminationReason({
  reason,
  signal,
  exitCode,
}: {
  reason?: string
  signal?: number
  exitCode: number
}): string {
  if (reason) return reason
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`
}
