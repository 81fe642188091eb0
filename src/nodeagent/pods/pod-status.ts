// Computes the status of a pod from the state of its containers, and the patch that writes it. Pure.
import { isDeepStrictEqual } from 'node:util'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { timestamp } from '../../base/timestamps.ts'
import { isSidecar, shouldRestart, shouldRestartInit } from './restart-policy.ts'

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
      /** Whether the readiness probe succeeds. Default true. */
      readonly isReady?: boolean
      /** Whether the startup probe has succeeded. Default true. */
      readonly isStarted?: boolean
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
      readonly last?: EndedRun
    }

/** A run of a container that has ended. */
export interface EndedRun {
  readonly code: number
  readonly reason: string
  readonly message?: string
  readonly startedMs: number
  readonly endedMs?: number
  readonly id?: string
}

export interface PodView {
  /** The init containers in the order of the spec. */
  readonly init: readonly ContainerView[]
  readonly main: readonly ContainerView[]
  /** The ephemeral containers, which do not affect the phase. Default: none. */
  readonly ephemeral?: readonly ContainerView[]
  readonly hostIP?: string
  /** The address of the machine, because commands share its network. */
  readonly podIP?: string
}

/** Returns a view with the state `view` for all main containers and `init` for all init containers. */
export const viewOfAll = (pod: Readonly<Pod>, view: ContainerView, init: ContainerView = view): PodView => ({
  init: (pod.spec?.initContainers ?? []).map(() => init),
  main: (pod.spec?.containers ?? []).map(() => view),
})

type Phase = NonNullable<PodStatus['phase']>

export function phaseOf(pod: Readonly<Pod>, { init, main }: PodView): Phase {
  const { initContainers = [], containers = [] } = pod.spec ?? {}
  const hasStarted = main.some((view) => view.is !== 'waiting' || (view.restarts ?? 0) > 0)
  const activePhase = hasStarted ? 'Running' : 'Pending'
  // A terminal phase means that no container runs, so a running sidecar delays it.
  if (initContainers.some((container, index) => isSidecar(container) && init[index]?.is === 'running')) {
    return activePhase
  }
  const hasInitFailed = initContainers.some(
    (container, index) => !isSidecar(container) && hasFailed(init[index]) && !shouldRestartInit(pod, container),
  )
  if (hasInitFailed) return 'Failed'
  const isComplete = (view: ContainerView, index: number) =>
    view.is === 'ended' && !shouldRestart(pod, containers[index] ?? {}, view.code)
  if (main.length === 0 || !main.every(isComplete)) return activePhase
  return main.some(hasFailed) ? 'Failed' : 'Succeeded'
}

const hasFailed = (view: ContainerView | undefined): boolean => view?.is === 'ended' && view.code !== 0

export interface StatusOptions {
  /** Whether no container is started again, because the pod is being deleted. */
  readonly isStopped?: boolean
  /** Whether all volumes are mounted, so that containers can start. Default: whether the pod runs. */
  readonly isPrepared?: boolean
  /** The reason why the agent stopped the pod. The phase is then Failed, regardless of the exit codes of its containers. */
  readonly failure?: { readonly reason: string; readonly message: string }
}

export function statusOf(
  pod: Readonly<Pod>,
  view: PodView,
  nowMs: number,
  { isStopped = false, isPrepared, failure }: StatusOptions = {},
): PodStatus {
  const { spec, status: old } = pod
  const { generation } = pod.metadata
  const generationField = generation === undefined ? {} : { observedGeneration: generation }
  const phase = failure ? 'Failed' : isStopped ? stoppedPhaseOf(view) : phaseOf(pod, view)
  const isTerminal = phase === 'Succeeded' || phase === 'Failed'
  const now = timestamp(nowMs)
  const { containers = [], initContainers = [] } = spec ?? {}
  const unreadyNames = [
    ...initContainers.filter((container, index) => isSidecar(container) && !isReadyView(view.init[index])),
    ...containers.filter((_, index) => !isReadyView(view.main[index])),
  ].map(({ name }) => name)
  const incompleteNames = initContainers
    .filter((container, index) => !isInitialized(container, view.init[index]))
    .map(({ name }) => name)

  const condition = (type: string, isTrue: boolean, details: { reason?: string; message?: string } = {}) => {
    const previous = old?.conditions?.find((candidate) => candidate.type === type)
    const status = isTrue ? 'True' : 'False'
    const lastTransitionTime = previous?.status === status ? (previous.lastTransitionTime ?? now) : now
    return { type, status, lastTransitionTime, ...(isTrue ? {} : details), ...generationField }
  }
  const notReadyDetails = isTerminal
    ? { reason: phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${unreadyNames.join(' ')}]` }
  const notInitializedDetails = {
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incompleteNames.join(' ')}]`,
  }
  const areContainersReady = !isTerminal && unreadyNames.length === 0
  const gateMessages = areContainersReady ? unmetGates(pod) : []

  const previousStatusOf = (list: StatusList, name: string) => old?.[list]?.find((status) => status.name === name)
  const statuses = (list: StatusList, specs: readonly Readonly<Container>[], views: readonly ContainerView[]) =>
    specs.map((container, index) => {
      const containerView = views[index]!
      const status = containerStatusOf(container, containerView, previousStatusOf(list, container.name), now)
      // An init container that is not a sidecar becomes ready when it completes.
      const isInit = list === 'initContainerStatuses' && !isSidecar(container)
      return isInit ? { ...status, ready: hasSucceeded(containerView) } : status
    })

  return {
    ...generationField,
    phase,
    ...failure,
    conditions: [
      condition('PodReadyToStartContainers', !isTerminal && (isPrepared ?? phase !== 'Pending')),
      condition('Initialized', incompleteNames.length === 0, notInitializedDetails),
      condition(
        'Ready',
        areContainersReady && gateMessages.length === 0,
        areContainersReady ? { reason: 'ReadinessGatesNotReady', message: gateMessages.join(', ') } : notReadyDetails,
      ),
      condition('ContainersReady', areContainersReady, notReadyDetails),
      condition('PodScheduled', true),
    ],
    ...(view.hostIP ? { hostIP: view.hostIP, hostIPs: [{ ip: view.hostIP }] } : {}),
    ...(view.podIP ? { podIP: view.podIP, podIPs: [{ ip: view.podIP }] } : {}),
    startTime: old?.startTime ?? now,
    ...(spec?.initContainers?.length
      ? { initContainerStatuses: statuses('initContainerStatuses', spec.initContainers, view.init) }
      : {}),
    containerStatuses: statuses('containerStatuses', containers, view.main),
    ...(view.ephemeral?.length
      ? {
          ephemeralContainerStatuses: statuses(
            'ephemeralContainerStatuses',
            (spec?.ephemeralContainers ?? []) as readonly Container[],
            view.ephemeral,
          ),
        }
      : {}),
  }
}

type StatusList = 'initContainerStatuses' | 'containerStatuses' | 'ephemeralContainerStatuses'

const stoppedPhaseOf = ({ main }: PodView): Phase =>
  main.some((view) => view.is === 'ended' && view.code !== 0) ? 'Failed' : 'Succeeded'

const hasSucceeded = (view: ContainerView | undefined) => view?.is === 'ended' && view.code === 0
const isReadyView = (view: ContainerView | undefined) => view?.is === 'running' && (view.isReady ?? true)

const isInitialized = (container: Readonly<Container>, view: ContainerView | undefined) =>
  isSidecar(container) ? view?.is === 'running' && (view.isStarted ?? true) : hasSucceeded(view)

/** Returns a message for each readiness gate whose condition, which another component writes, is not True. */
function unmetGates({ spec, status }: Readonly<Pod>): string[] {
  return (spec?.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = status?.conditions?.find(({ type }) => type === conditionType)
    if (!condition) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`]
    if (condition.status === 'True') return []
    return [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`]
  })
}

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
        state: { waiting: { reason, ...messageOf(message) } },
        ...(old?.containerID === undefined ? {} : { containerID: old.containerID }),
      }
    }
    case 'running': {
      const startedAt = view.startedMs === undefined ? (startedBefore ?? now) : timestamp(view.startedMs)
      const { isReady = true, isStarted = true } = view
      const state = { running: { startedAt } }
      return { ...sharedFields, ready: isReady, started: isStarted, state, ...containerIdOf(view) }
    }
    case 'ended': {
      const { code: exitCode, reason, message } = view
      const startedAt = view.startedMs === undefined ? (startedBefore ?? now) : timestamp(view.startedMs)
      const finishedAt =
        view.endedMs === undefined ? (old?.state?.terminated?.finishedAt ?? now) : timestamp(view.endedMs)
      const terminated = { exitCode, reason, startedAt, finishedAt, ...messageOf(message), ...containerIdOf(view) }
      return { ...sharedFields, ready: false, started: false, state: { terminated }, ...containerIdOf(view) }
    }
  }
}

/** Returns the last termination that the view reports, or else the one in the previous status. */
function lastStateOf(
  view: ContainerView,
  old: ContainerStatus | undefined,
  now: string,
): ContainerStatus['lastState'] | undefined {
  const lastState = old?.lastState
  const ended = old?.state?.terminated
  if (!view.last) return view.is === 'waiting' && ended ? { terminated: ended } : lastState
  const { code: exitCode, reason, message, startedMs, endedMs } = view.last
  const startedAt = timestamp(startedMs)
  const previous = [ended, lastState?.terminated].find((termination) => termination?.startedAt === startedAt)
  const finishedAt = endedMs === undefined ? (previous?.finishedAt ?? now) : timestamp(endedMs)
  return {
    terminated: { exitCode, reason, startedAt, finishedAt, ...messageOf(message), ...containerIdOf(view.last) },
  }
}

const messageOf = (message: string | undefined) => (message === undefined ? {} : { message })
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
