// Plans which container of a pod to start next, whether to stop the sidecars, and what to report about each container. Pure: the
// state of the containers and the time in, the next step out. host-containers.ts reads the state and applies the plan.
//   init containers        one after the other, each until it has succeeded
//   sidecar containers     started in their turn; the next container waits until they have started, and they keep running
//   main containers        all, after the init containers; postStart of one delays the next
//   ephemeral containers   while the main containers run, once
//   complete pod           no main container runs or will run again: the sidecars are stopped
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { ContainerView, EndedRun, PodView } from '../pods/pod-status.ts'
import { isSidecar, shouldRestart, shouldRestartInit } from '../pods/restart-policy.ts'
import type { RunState } from './run-records.ts'

export interface ContainerState {
  readonly container: Readonly<Container>
  readonly latestRun?: LatestRun
  /** Whether the postStart hook of the latest run is running. */
  readonly isInPostStart: boolean
  /** Whether the startup probe has succeeded. */
  readonly isStarted: boolean
  /** Whether the readiness probe succeeds. */
  readonly isReady: boolean
  /** Why the container could not be started at the last attempt. */
  readonly error?: { readonly reason: string; readonly message: string }
}

export interface LatestRun {
  /** The run's index, starting at 0. */
  readonly run: number
  readonly state: RunState
  readonly id: string
  /** The termination message of a run that has ended. */
  readonly message?: string
  /** The previous run. */
  readonly last?: EndedRun
}

export interface PodStates {
  readonly init: readonly ContainerState[]
  readonly main: readonly ContainerState[]
  readonly ephemeral: readonly ContainerState[]
}

export interface PodPlan {
  /** The container to start before the next plan is made. */
  readonly start?: PlannedStart
  /** Whether to stop the sidecars, because no main container runs or will run again. */
  readonly stopSidecars: boolean
  readonly view: PodView
  /** Time until a container is due to be restarted, or Infinity. */
  readonly wakeInMs: number
}

export interface PlannedStart {
  readonly container: Readonly<Container>
  readonly run: number
  /** Delay between the end of this run and the next one. */
  readonly restartDelayMs: number
}

/** The first restart is immediate. Then the delays double from the minimum to the maximum. */
const RESTART_DELAY_MS_MIN = 10_000
const RESTART_DELAY_MS_MAX = 300_000
/** After a run that lasted longer than this, the delays start over. */
const RESTART_RESET_MS = 600_000

type Step =
  | { readonly is: 'start'; readonly start: PlannedStart; readonly view: ContainerView }
  | { readonly is: 'wait'; readonly view: ContainerView; readonly wakeInMs?: number }

export function planContainers(pod: Readonly<Pod>, { init, main, ephemeral }: PodStates, nowMs: number): PodPlan {
  const hasBegunMain = main.some(({ latestRun }) => latestRun)
  const isDone = isComplete(pod, { init, main })
  const isPendingMain = main.some(({ latestRun }) => !latestRun)
  const waitingView: ContainerView = {
    is: 'waiting',
    reason: init.length > 0 ? 'PodInitializing' : 'ContainerCreating',
  }
  const steps: Step[] = []
  let isBlocked = false
  const addIdle = (state: ContainerState) => steps.push({ is: 'wait', view: viewOf(state) ?? waitingView })

  for (const state of init) {
    const hasSucceeded = state.latestRun?.state.is === 'ended' && state.latestRun.state.code === 0
    if (isSidecar(state.container)) {
      if (isBlocked || isDone) addIdle(state)
      else {
        const step = planContainer(pod, state, { nowMs, waitingView, restarts: () => true })
        steps.push(step)
        isBlocked = !hasBegunMain && !(step.view.is === 'running' && state.isStarted)
      }
    } else if (hasBegunMain) {
      steps.push({ is: 'wait', view: viewOf(state) ?? { is: 'ended', code: 0, reason: 'Completed' } })
    } else if (isBlocked || hasSucceeded) addIdle(state)
    else {
      const restarts = (code: number) => code !== 0 && shouldRestartInit(pod, state.container)
      steps.push(planContainer(pod, state, { nowMs, waitingView, restarts }))
      isBlocked = true
    }
  }
  for (const state of main) {
    if (isBlocked || (isDone && !state.latestRun)) addIdle(state)
    else {
      const restarts = (code: number) => shouldRestart(pod, state.container, code)
      steps.push(planContainer(pod, state, { nowMs, waitingView, restarts }))
      isBlocked = state.isInPostStart
    }
  }
  for (const state of ephemeral) {
    if (isBlocked || isDone || isPendingMain) addIdle(state)
    else steps.push(planContainer(pod, state, { nowMs, waitingView, restarts: () => false }))
  }
  const start = steps.find((step) => step.is === 'start')?.start
  const views = steps.map(({ view }) => view)
  return {
    ...(start ? { start } : {}),
    stopSidecars: isDone,
    view: {
      init: views.slice(0, init.length),
      main: views.slice(init.length, init.length + main.length),
      ephemeral: views.slice(init.length + main.length),
    },
    wakeInMs: Math.min(...steps.map((step) => (step.is === 'wait' && step.wakeInMs) || Number.POSITIVE_INFINITY)),
  }
}

/** Returns whether no main container runs or will run again. */
function isComplete(pod: Readonly<Pod>, { init, main }: Pick<PodStates, 'init' | 'main'>): boolean {
  const hasInitFailed = init.some(({ container, latestRun }) => {
    const hasFailed = latestRun?.state.is === 'ended' && latestRun.state.code !== 0
    return hasFailed && !isSidecar(container) && !shouldRestartInit(pod, container)
  })
  if (hasInitFailed) return true
  return main.every(({ container, latestRun }) => {
    if (latestRun?.state.is !== 'ended') return false
    const { code, isKilled } = latestRun.state
    return !(isKilled && mayRestart(pod, container)) && !shouldRestart(pod, container, code)
  })
}

/** Returns whether the agent restarts a container that it has ended because of a probe or a hook. */
const mayRestart = ({ spec }: Readonly<Pod>, { restartPolicy = spec?.restartPolicy }: Readonly<Container>): boolean =>
  restartPolicy !== 'Never'

function planContainer(
  pod: Readonly<Pod>,
  state: ContainerState,
  {
    nowMs,
    waitingView,
    restarts,
  }: { readonly nowMs: number; readonly waitingView: ContainerView; restarts(code: number): boolean },
): Step {
  const { container, latestRun, error } = state
  if (error) return { is: 'wait', view: { is: 'waiting', ...error, ...fieldsOfEarlierRuns(latestRun) } }
  if (!latestRun) return { is: 'start', start: { container, run: 0, restartDelayMs: 0 }, view: waitingView }
  const run = latestRun.state
  const isRestarted = run.is === 'ended' && (restarts(run.code) || (run.isKilled && mayRestart(pod, container)))
  if (!isRestarted) return { is: 'wait', view: viewOf(state) ?? waitingView }

  const endedMs = run.endedMs ?? run.startedMs
  const isReset = endedMs - run.startedMs > RESTART_RESET_MS
  const delayMs = isReset ? 0 : run.restartDelayMs
  const waitMs = Math.min(endedMs + delayMs - nowMs, delayMs)
  if (waitMs > 0) {
    const message = `back-off ${formatDuration(delayMs)} restarting failed container=${container.name} pod=${podName(pod)}`
    const view = { is: 'waiting', reason: 'CrashLoopBackOff', message, ...fieldsOfEarlierRuns(latestRun) } as const
    return { is: 'wait', view, wakeInMs: waitMs }
  }
  const restartDelayMs = delayMs === 0 ? RESTART_DELAY_MS_MIN : Math.min(2 * delayMs, RESTART_DELAY_MS_MAX)
  return {
    is: 'start',
    start: { container, run: latestRun.run + 1, restartDelayMs },
    view: viewOf(state) ?? waitingView,
  }
}

/** Returns what is reported about the latest run, or undefined for one whose command does not run yet. */
export function viewOf({ latestRun, isInPostStart, isReady, isStarted }: ContainerState): ContainerView | undefined {
  if (!latestRun) return undefined
  const { state, run: restarts, id, last } = latestRun
  if (state.is === 'ended') return { is: 'ended', ...endedRunOf(latestRun, state), restarts, ...(last ? { last } : {}) }
  if (state.is === 'starting' || isInPostStart) return undefined
  const { startedMs } = state
  return { is: 'running', startedMs, restarts, id, isReady, isStarted, ...(last ? { last } : {}) }
}

/** Returns the view's fields about earlier runs, for a container that waits for its next run. */
const fieldsOfEarlierRuns = (latestRun: LatestRun | undefined) =>
  latestRun?.state.is === 'ended'
    ? { restarts: latestRun.run, last: endedRunOf(latestRun, latestRun.state) }
    : { restarts: latestRun?.run ?? 0 }

export function endedRunOf(
  { id, message }: Pick<LatestRun, 'id' | 'message'>,
  { code, startedMs, endedMs, isLost, startError }: Extract<RunState, { is: 'ended' }>,
): EndedRun {
  const reason = startError ? 'StartError' : isLost ? 'ContainerStatusUnknown' : code === 0 ? 'Completed' : 'Error'
  const text = startError ?? message
  return {
    code,
    reason,
    startedMs,
    id,
    ...(endedMs === undefined ? {} : { endedMs }),
    ...(text ? { message: text } : {}),
  }
}

const podName = ({ metadata }: Readonly<Pod>): string => `${metadata.name}_${metadata.namespace}(${metadata.uid})`

/** Formats as the kubelet does: 10s, 2m40s, 5m0s. */
const formatDuration = (ms: number): string => {
  const seconds = ms / 1_000
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}
