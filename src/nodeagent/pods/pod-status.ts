// Computes the status of a pod from the state of its containers, and the patch that writes it. Pure.
import { isDeepStrictEqual } from 'node:util'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { timestamp } from '../../base/timestamps.ts'

export type ContainerView =
  | {
      readonly is: 'waiting'
      readonly reason: string
      readonly message?: string
      readonly restarts?: number
      readonly last?: EndedRun
    }
  | {
      readonly is: 'running'
      readonly startedMs?: number
      readonly restarts?: number
      readonly id?: string
      readonly last?: EndedRun
    }
  | {
      readonly is: 'ended'
      readonly code: number
      readonly reason: string
      readonly message?: string
      readonly startedMs?: number
      readonly endedMs?: number
      readonly restarts?: number
      readonly id?: string
    }

/** The previous run of a container. */
export interface EndedRun {
  readonly code: number
  readonly reason: string
  readonly startedMs: number
}

export interface PodView {
  /** The init containers in the order of the spec. */
  readonly init: readonly ContainerView[]
  readonly main: readonly ContainerView[]
  readonly hostIP?: string
}

/** Returns a view in which all containers have the same state. */
export const viewOfAll = (pod: Readonly<Pod>, view: ContainerView, init: ContainerView = view): PodView => ({
  init: (pod.spec?.initContainers ?? []).map(() => init),
  main: (pod.spec?.containers ?? []).map(() => view),
})

type Phase = NonNullable<PodStatus['phase']>

export function phaseOf({ spec }: Readonly<Pod>, { init, main }: PodView): Phase {
  const restartPolicy = spec?.restartPolicy ?? 'Always'
  const hasFailed = (view: ContainerView) => view.is === 'ended' && view.code !== 0
  if (restartPolicy === 'Never' && init.some(hasFailed)) return 'Failed'
  if (main.length > 0 && main.every(({ is }) => is === 'ended')) {
    if (restartPolicy === 'Never') return main.some(hasFailed) ? 'Failed' : 'Succeeded'
    if (restartPolicy === 'OnFailure' && !main.some(hasFailed)) return 'Succeeded'
    return 'Running'
  }
  const hasStarted = main.some((view) => view.is !== 'waiting' || (view.restarts ?? 0) > 0)
  return hasStarted ? 'Running' : 'Pending'
}

export interface StatusOptions {
  /** Whether no container is started again, because the pod is being deleted. */
  readonly isStopped?: boolean
  /** The reason why the agent stopped the pod. The phase is then Failed, regardless of the exit codes of its containers. */
  readonly failure?: { readonly reason: string; readonly message: string }
}

export function statusOf(
  pod: Readonly<Pod>,
  view: PodView,
  nowMs: number,
  { isStopped = false, failure }: StatusOptions = {},
): PodStatus {
  const { spec, status: old } = pod
  const { generation } = pod.metadata
  const generationField = generation === undefined ? {} : { observedGeneration: generation }
  const phase = failure ? 'Failed' : isStopped ? stoppedPhaseOf(view) : phaseOf(pod, view)
  const isFinished = phase === 'Succeeded' || phase === 'Failed'
  const now = timestamp(nowMs)
  const containers = spec?.containers ?? []
  const unreadyNames = containers.filter((_, index) => view.main[index]?.is !== 'running').map(({ name }) => name)
  const incompleteNames = (spec?.initContainers ?? [])
    .filter((_, index) => !hasSucceeded(view.init[index]))
    .map(({ name }) => name)

  const condition = (type: string, isTrue: boolean, details: { reason?: string; message?: string } = {}) => {
    const previous = old?.conditions?.find((candidate) => candidate.type === type)
    const status = isTrue ? 'True' : 'False'
    const lastTransitionTime = previous?.status === status ? (previous.lastTransitionTime ?? now) : now
    return { type, status, lastTransitionTime, ...(isTrue ? {} : details), ...generationField }
  }
  const notReadyDetails = isFinished
    ? { reason: phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${unreadyNames.join(' ')}]` }
  const notInitializedDetails = {
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incompleteNames.join(' ')}]`,
  }
  const isReady = !isFinished && unreadyNames.length === 0

  const previousStatusOf = (list: 'initContainerStatuses' | 'containerStatuses', name: string) =>
    old?.[list]?.find((status) => status.name === name)
  const statuses = (
    list: 'initContainerStatuses' | 'containerStatuses',
    specs: readonly { readonly name: string; readonly image?: string }[],
    views: readonly ContainerView[],
  ) =>
    specs.map((container, index) => {
      const containerView = views[index]!
      const status = containerStatusOf(container, containerView, previousStatusOf(list, container.name), now)
      // An init container is ready when it has completed, and not while it runs.
      return list === 'initContainerStatuses' ? { ...status, ready: hasSucceeded(containerView) } : status
    })

  return {
    ...generationField,
    phase,
    ...failure,
    conditions: [
      condition('PodReadyToStartContainers', phase !== 'Pending' && !isFinished),
      condition('Initialized', incompleteNames.length === 0, notInitializedDetails),
      condition('Ready', isReady, notReadyDetails),
      condition('ContainersReady', isReady, notReadyDetails),
      condition('PodScheduled', true),
    ],
    ...(view.hostIP ? { hostIP: view.hostIP, hostIPs: [{ ip: view.hostIP }] } : {}),
    startTime: old?.startTime ?? now,
    ...(spec?.initContainers?.length
      ? { initContainerStatuses: statuses('initContainerStatuses', spec.initContainers, view.init) }
      : {}),
    containerStatuses: statuses('containerStatuses', containers, view.main),
  }
}

const stoppedPhaseOf = ({ main }: PodView): Phase =>
  main.some((view) => view.is === 'ended' && view.code !== 0) ? 'Failed' : 'Succeeded'

const hasSucceeded = (view: ContainerView | undefined) => view?.is === 'ended' && view.code === 0

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number]

function containerStatusOf(
  { name, image = '' }: { readonly name: string; readonly image?: string },
  view: ContainerView,
  old: ContainerStatus | undefined,
  now: string,
): ContainerStatus {
  const restartCount = view.restarts ?? old?.restartCount ?? 0
  const lastState = lastStateOf(view, old, now)
  const sharedFields = { name, image, imageID: '', restartCount, ...(lastState ? { lastState } : {}) }
  const startedBefore = old?.state?.running?.startedAt ?? old?.state?.terminated?.startedAt
  switch (view.is) {
    case 'waiting': {
      const { reason, message } = view
      return {
        ...sharedFields,
        ready: false,
        started: false,
        state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
      }
    }
    case 'running': {
      const startedAt = view.startedMs === undefined ? (startedBefore ?? now) : timestamp(view.startedMs)
      return { ...sharedFields, ready: true, started: true, state: { running: { startedAt } }, ...containerIdOf(view) }
    }
    case 'ended': {
      const { code: exitCode, reason, message } = view
      const startedAt = view.startedMs === undefined ? (startedBefore ?? now) : timestamp(view.startedMs)
      const finishedAt =
        view.endedMs === undefined ? (old?.state?.terminated?.finishedAt ?? now) : timestamp(view.endedMs)
      const terminated = { exitCode, reason, startedAt, finishedAt, ...(message === undefined ? {} : { message }) }
      return { ...sharedFields, ready: false, started: false, state: { terminated }, ...containerIdOf(view) }
    }
  }
}

/** Returns the last termination that the containers report, or otherwise the one in the previous status. */
function lastStateOf(
  view: ContainerView,
  old: ContainerStatus | undefined,
  now: string,
): ContainerStatus['lastState'] | undefined {
  const lastState = old?.lastState
  const ended = old?.state?.terminated
  if (view.is === 'ended' || !view.last) return view.is === 'waiting' && ended ? { terminated: ended } : lastState
  const { code: exitCode, reason, startedMs } = view.last
  const startedAt = timestamp(startedMs)
  const previous = [ended, lastState?.terminated].find((termination) => termination?.startedAt === startedAt)
  return { terminated: { exitCode, reason, startedAt, finishedAt: previous?.finishedAt ?? now } }
}

const containerIdOf = ({ id }: { readonly id?: string }) => (id === undefined ? {} : { containerID: id })

/** Returns a strategic merge patch from the old status to the new one, or undefined if they are equal. */
export function statusPatch(old: Readonly<PodStatus> | undefined, next: PodStatus): object | undefined {
  const conditions = (next.conditions ?? []).filter((condition) => {
    const previous = old?.conditions?.find(({ type }) => type === condition.type)
    return !previous || CONDITION_FIELDS.some((field) => previous[field] !== condition[field])
  })
  const otherFields = Object.entries(next).filter(
    ([key, value]) => key !== 'conditions' && !isDeepStrictEqual(old?.[key as keyof PodStatus], value),
  )
  if (conditions.length + otherFields.length === 0) return undefined
  // Null removes the previous reason and message.
  const patches = conditions.map((condition) => ({ reason: null, message: null, ...condition }))
  return { ...Object.fromEntries(otherFields), ...(patches.length > 0 ? { conditions: patches } : {}) }
}

const CONDITION_FIELDS = ['status', 'reason', 'message', 'observedGeneration'] as const
