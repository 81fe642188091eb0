// Runs containers as processes of this machine. Reads the records of their runs (run-records.ts), plans the next step
// (plan-containers.ts) and applies it. Processes survive a restart of the agent, which finds them by their records.
// start-container.ts starts a run; stop-run.ts ends it; probes.ts checks the containers.

import { join } from 'node:path'
import type { Stored } from '../../api/kind.ts'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Logger } from '../../base/log.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { ContainerView, PodView } from '../pods/pod-status.ts'
import { isSidecar } from '../pods/restart-policy.ts'
import { type Action, type ActionTarget, runAction } from './actions.ts'
import { openPodCgroups, type PodCgroups } from './cgroup.ts'
import { createContainerInputs } from './container-input.ts'
import { createContainerLogs } from './container-logs.ts'
import type { Containers } from './containers.ts'
import { ConfigError } from './environment.ts'
import { ContainerNotRunningError, execInContainer } from './exec-in-container.ts'
import { DEFAULT_LOG_LIMITS, type LogLimits } from './logs/log-writer.ts'
import { type ContainerState, endedRunOf, type LatestRun, planContainers, viewOf } from './plan-containers.ts'
import { createProbes } from './probes.ts'
import { type RunFiles, readRun, runFiles } from './run-records.ts'
import { type ContainerSources, createContainerStarter, ImageError, withUser } from './start-container.ts'
import { createRunStopper, sendSignal } from './stop-run.ts'
import { readTerminationMessage } from './termination-message.ts'
import type { VolumePaths } from './volume-path.ts'

export interface HostContainersDeps extends ContainerSources {
  readonly log: Logger
  /** Default: the kubelet's limits. */
  readonly logLimits?: LogLimits
  /** Default: the cgroups of this machine. */
  readonly cgroups?: PodCgroups
}

const POLL_INTERVAL_MS = 1_000 // interval for processes of an earlier run of the agent, whose exit causes no event
const RETRY_DELAY_MS = 10_000 // interval at which a container that could not be started is tried again
const KILL_POLL_INTERVAL_MS = 200
const PID_MODE = 0o600
const DEFAULT_GRACE_SECONDS = 30
const POST_START_MS_MAX = 24 * 60 * 60 * 1_000 // a hook that runs longer fails, and its container is ended

export async function createHostContainers(deps: HostContainersDeps): Promise<Containers> {
  const { paths, disk, clock, log } = deps
  const isRoot = process.getuid?.() === 0
  const cgroups: PodCgroups & { message?: string } = deps.cgroups ?? (await openPodCgroups())
  if (cgroups.message) log.warn({ reason: cgroups.message }, 'commands run without a cgroup')
  const timers = new Map<string, { readonly dueMs: number; cancel(): void }>()
  /** The last known objects of the pods, for the hooks of a pod whose object was deleted by force. */
  const knownPods = new Map<string, Readonly<Stored<Pod>>>()
  /** Runs whose postStart hook is running. */
  const postStarts = new Set<string>()
  /** Runs whose probe or postStart hook has failed and that must be ended, with the message of the event. */
  const failedRuns = new Map<string, { readonly message: string; readonly graceSeconds?: number }>()
  /** Monotonic time at which the grace period of a pod that is being stopped ends. */
  const deadlinesMs = new Map<string, number>()
  const logs = createContainerLogs({ paths, disk, clock, log, limits: deps.logLimits ?? DEFAULT_LOG_LIMITS })
  const inputs = createContainerInputs({ clock })
  let notifyChange: (uid: string) => void = () => {}
  let recordPodEvent: (pod: Readonly<Stored<Pod>>, event: EventDetails) => void = () => {}

  /** Calls the listener after this time, or earlier if an earlier call is pending. */
  const notifyAfter = (uid: string, ms: number) => {
    const dueMs = clock.monotonicMs() + ms
    const pending = timers.get(uid)
    if (pending && pending.dueMs <= dueMs) return
    pending?.cancel()
    const cancel = clock.after(ms, () => {
      timers.delete(uid)
      notifyChange(uid)
    })
    timers.set(uid, { dueMs, cancel })
  }
  const runKeyOf = (uid: string, name: string, run: number) => `${uid}/${name}/${run}`
  const filesOf = (uid: string, name: string, run: number): RunFiles =>
    runFiles(join(paths.container(uid, name), String(run)))
  const recordEvent = ({ pod }: ActionTarget, event: EventDetails) => recordPodEvent(pod, event)
  const run = (target: ActionTarget, action: Action, timeoutMs: number) =>
    runAction(target, action, timeoutMs, { clock, exec })
  const probes = createProbes({
    clock,
    runAction: run,
    recordEvent,
    onChange: ({ pod }) => notifyChange(pod.metadata.uid),
  })
  const stopper = createRunStopper({
    clock,
    runAction: run,
    recordEvent,
    notifyAfter,
    notify: (uid) => notifyChange(uid),
  })
  const starter = await createContainerStarter({
    ...deps,
    isRoot,
    cgroups,
    logs,
    inputs,
    filesOf,
    onExit: (uid) => notifyChange(uid),
  })

  async function readLatestRun(
    uid: string,
    container: Readonly<Container>,
    containerCount: number,
  ): Promise<LatestRun | undefined> {
    const { name } = container
    const readNumbered = async (number: number) => {
      const files = filesOf(uid, name, number)
      const state = await readRun(files, disk)
      const id = `stowage://${uid}_${name}_${number}`
      if (state?.is !== 'ended') return { state, id }
      const message = await readTerminationMessage(files, container, { code: state.code, containerCount })
      return { state, id, ...(message === undefined ? {} : { message }) }
    }
    const numbers = (await disk.list(paths.container(uid, name))).map(Number).filter(Number.isInteger)
    for (const number of numbers.sort((a, b) => b - a)) {
      const { state, ...details } = await readNumbered(number)
      if (!state) continue
      const previous = number > 0 ? await readNumbered(number - 1) : undefined
      const last = previous?.state?.is === 'ended' ? endedRunOf(previous, previous.state) : undefined
      return { run: number, state, ...details, ...(last ? { last } : {}) }
    }
    return undefined
  }

  /**
   * Marks runs whose process has not written its PID as lost: an earlier agent was killed while it started them. If such a
   * process exists after all, it finds the PID file and exits, so that it does not run at the same time as the next run.
   */
  async function markLostRuns(pod: Readonly<Stored<Pod>>): Promise<void> {
    for (const { name } of listContainers(pod)) {
      for (const number of await disk.list(paths.container(pod.metadata.uid, name))) {
        const { started, pid } = runFiles(join(paths.container(pod.metadata.uid, name), number))
        if ((await disk.kindOf(started)) !== undefined) await disk.makeEmptyFile(pid, PID_MODE)
      }
    }
  }

  async function readState(
    pod: Readonly<Stored<Pod>>,
    container: Readonly<Container>,
    errors: ReadonlyMap<string, StartError>,
  ): Promise<ContainerState> {
    const uid = pod.metadata.uid
    const latestRun = await readLatestRun(uid, container, listContainers(pod).length)
    const error = errors.get(container.name)
    const runKey = latestRun ? runKeyOf(uid, container.name, latestRun.run) : ''
    if (latestRun?.state.is === 'ended') {
      probes.stop(runKey)
      stopper.forget(runKey)
      failedRuns.delete(runKey)
    }
    const isInPostStart = postStarts.has(runKey)
    if (latestRun?.state.is === 'running' && !isInPostStart) {
      const { startedMs } = latestRun.state
      probes.start(runKey, { pod, container }, { startedMs, initial: findEarlierResults(pod, container, startedMs) })
    }
    const { isStarted, isReady, failed } = probes.read(runKey)
    if (failed && !failedRuns.has(runKey)) {
      const kind = failed.kind.toLowerCase()
      const message = `Container ${container.name} failed ${kind} probe, will be restarted`
      failedRuns.set(runKey, { message, graceSeconds: failed.graceSeconds })
    }
    return {
      container,
      isInPostStart,
      isStarted,
      isReady,
      ...(latestRun ? { latestRun } : {}),
      ...(error ? { error } : {}),
    }
  }

  async function readStates(pod: Readonly<Stored<Pod>>, errors: ReadonlyMap<string, StartError> = new Map()) {
    const readAll = (containers: readonly Readonly<Container>[] = []) =>
      Promise.all(containers.map((container) => readState(pod, container, errors)))
    return {
      init: await readAll(pod.spec?.initContainers),
      main: await readAll(pod.spec?.containers),
      ephemeral: await readAll(listEphemeralContainers(pod)),
    }
  }

  async function start(
    pod: Readonly<Stored<Pod>>,
    planned: Parameters<typeof starter.start>[1],
    volumes: VolumePaths,
  ): Promise<StartError | undefined> {
    const { container } = planned
    const target = { pod, container }
    try {
      const isStarted = await starter.start(pod, planned, volumes)
      if (!isStarted) return undefined // the run's record has the reason
    } catch (error) {
      const { message } = error as Error
      recordEvent(target, { type: 'Warning', reason: 'Failed', message: `Error: ${message}` })
      notifyAfter(pod.metadata.uid, RETRY_DELAY_MS)
      return { reason: reasonOf(error), message }
    }
    recordEvent(target, { type: 'Normal', reason: 'Created', message: `Created container ${container.name}` })
    recordEvent(target, { type: 'Normal', reason: 'Started', message: `Started container ${container.name}` })
    startHook(target, planned.run)
    return undefined
  }

  /** Runs the postStart hook. If it fails, the run is ended. */
  function startHook(target: ActionTarget, number: number): void {
    const hook = target.container.lifecycle?.postStart
    if (!hook) return
    const uid = target.pod.metadata.uid
    const runKey = runKeyOf(uid, target.container.name, number)
    postStarts.add(runKey)
    void run(target, hook, POST_START_MS_MAX)
      .catch(({ message }: Error) => ({ isSuccess: false, output: message }))
      .then(({ isSuccess, output }) => {
        postStarts.delete(runKey)
        if (!isSuccess) {
          const message = `PostStartHook failed: ${output}`
          recordEvent(target, { type: 'Warning', reason: 'FailedPostStartHook', message })
          failedRuns.set(runKey, { message: 'FailedPostStartHook' })
        }
        notifyChange(uid)
      })
  }

  /** Ends the runs whose probe or hook has failed, including those that an earlier agent recorded. */
  async function endFailedRuns(pod: Readonly<Stored<Pod>>, states: readonly ContainerState[]): Promise<void> {
    const uid = pod.metadata.uid
    for (const { container, latestRun } of states) {
      if (latestRun?.state.is !== 'running') continue
      const key = runKeyOf(uid, container.name, latestRun.run)
      const files = filesOf(uid, container.name, latestRun.run)
      const record = await disk.readText(files.killed)
      const failedRun = failedRuns.get(key) ?? (record === undefined ? undefined : { message: record.trim() })
      if (!failedRun) continue
      if (record === undefined) await disk.writeText(files.killed, `${failedRun.message}\n`)
      const graceSeconds = failedRun.graceSeconds ?? graceSecondsOf(pod)
      stopper.stop({
        key,
        uid,
        pid: latestRun.state.pid,
        target: { pod, container },
        graceSeconds,
        message: failedRun.message,
      })
    }
  }

  /** Stops the containers that run. Returns whether none runs. */
  function stopContainers(uid: string, states: readonly StoppableContainer[], graceSeconds: number): boolean {
    const running = states.filter(({ latestRun }) => latestRun && latestRun.state.is !== 'ended')
    for (const { name, target, latestRun } of running) {
      const { run: number, state } = latestRun!
      if (state.is === 'ended') continue
      const key = runKeyOf(uid, name, number)
      probes.stop(key)
      stopper.stop({ key, uid, pid: state.pid, target, graceSeconds, message: `Stopping container ${name}` })
    }
    return running.length === 0
  }

  /** Reads the containers with records, even if the pod object is not known. */
  async function readStoppable(uid: string): Promise<StoppableContainer[]> {
    const pod = knownPods.get(uid)
    const containers = pod ? listContainers(pod) : []
    return Promise.all(
      (await disk.list(paths.containers(uid))).map(async (name) => {
        const container = containers.find((candidate) => candidate.name === name)
        const latestRun = await readLatestRun(uid, container ?? { name }, Math.max(1, containers.length))
        const initIndex = pod?.spec?.initContainers?.findIndex((candidate) => candidate.name === name) ?? -1
        return {
          name,
          latestRun,
          ...(pod && container ? { target: { pod, container } } : {}),
          sidecarIndex: container && initIndex >= 0 && isSidecar(container) ? initIndex : -1,
        }
      }),
    )
  }

  /** Throws ContainerNotRunningError. */
  async function findRunning(pod: Readonly<Stored<Pod>>, name: string) {
    const uid = pod.metadata.uid
    const container = listContainers(pod).find((candidate) => candidate.name === name)
    const latestRun = container && (await readLatestRun(uid, container, 1))
    if (!container || latestRun?.state.is !== 'running') {
      throw new ContainerNotRunningError(`container ${JSON.stringify(name)} runs no command`)
    }
    return { container, pid: latestRun.state.pid, files: filesOf(uid, name, latestRun.run) }
  }

  async function exec(...[pod, containerName, options]: Parameters<Containers['exec']>) {
    const uid = pod.metadata.uid
    const { container, pid } = await findRunning(pod, containerName)
    const command = withUser(pod, container, [...options.command], isRoot)
    const cgroupFiles = isRoot ? await cgroups.create(uid) : []
    const workingDir = container.workingDir || '/'
    return execInContainer({ pid, workingDir, cgroupFiles, isAgentRoot: isRoot }, { ...options, command }, { clock })
  }

  return {
    runsCommands: true,

    async prepare(uid) {
      if (isRoot) await cgroups.create(uid)
    },

    async advance(pod, volumes): Promise<PodView> {
      const uid = pod.metadata.uid
      knownPods.set(uid, pod)
      await markLostRuns(pod)
      const errors = new Map<string, StartError>()
      for (;;) {
        const states = await readStates(pod, errors)
        const all = [...states.init, ...states.main, ...states.ephemeral]
        await endFailedRuns(pod, all)
        const plan = planContainers(pod, states, clock.nowMs())
        if (plan.start) {
          const error = await start(pod, plan.start, volumes)
          if (error) errors.set(plan.start.container.name, error)
          continue
        }
        if (plan.stopSidecars) await stopSidecars(uid, graceSecondsOf(pod))
        recordBackOffs(pod, plan.view, (event) => recordPodEvent(pod, event))
        if (plan.wakeInMs < Number.POSITIVE_INFINITY) notifyAfter(uid, plan.wakeInMs)
        const isPolled = all.some(({ latestRun }) => {
          const state = latestRun?.state
          return state?.is === 'starting' || (state?.is === 'running' && !starter.isChild(state.pid))
        })
        if (isPolled) notifyAfter(uid, POLL_INTERVAL_MS)
        return { ...plan.view, ...(all.some(({ latestRun }) => latestRun) ? { podIP: deps.address } : {}) }
      }
    },

    exec,

    async attach(pod, containerName, options) {
      const { container, pid, files } = await findRunning(pod, containerName)
      const capture = logs.find(files)
      if (!capture) throw new ContainerNotRunningError('the container has closed its output')
      return inputs.attach({ container, pid, files, capture }, options)
    },

    async findLog(pod, containerName, { previous }) {
      const uid = pod.metadata.uid
      const latestRun = await readLatestRun(uid, { name: containerName }, 1)
      if (!latestRun) return undefined
      // The status of a container that waits for its restart has the latest run as its last state.
      const isWaiting = latestRun.state.is === 'ended' && hasWaitingState(pod, containerName)
      const number = previous && !isWaiting ? latestRun.run - 1 : latestRun.run
      const files = filesOf(uid, containerName, number)
      if (!(await readRun(files, disk))) return undefined
      const hasEnded = async () => {
        const state = await readRun(files, disk)
        return state === undefined || state.is === 'ended'
      }
      return { path: files.log, capture: logs.find(files), hasEnded }
    },

    async stop(uid, graceSeconds) {
      const states = await readStoppable(uid)
      if (!states.some(({ latestRun }) => latestRun && latestRun.state.is !== 'ended')) {
        for (const pid of await cgroups.processes(uid)) sendSignal(pid, 'SIGKILL') // processes that outlived their command
        // A process disappears from the list of a cgroup shortly before it leaves the cgroup.
        if ((await cgroups.processes(uid)).length > 0 || !(await cgroups.remove(uid))) {
          notifyAfter(uid, KILL_POLL_INTERVAL_MS)
          return false
        }
        deadlinesMs.delete(uid)
        return true
      }
      const requestedMs = clock.monotonicMs() + graceSeconds * 1_000
      const deadlineMs = Math.min(deadlinesMs.get(uid) ?? Number.POSITIVE_INFINITY, requestedMs)
      deadlinesMs.set(uid, deadlineMs)
      const remainingMs = deadlineMs - clock.monotonicMs()
      if (remainingMs <= 0) for (const pid of await cgroups.processes(uid)) sendSignal(pid, 'SIGKILL')
      const others = states.filter(({ sidecarIndex }) => sidecarIndex < 0)
      if (stopContainers(uid, others, graceSeconds)) {
        // The sidecars share the rest of the grace period, but have at least a short time to exit.
        const restSeconds = graceSeconds === 0 ? 0 : Math.max(SIDECAR_GRACE_SECONDS_MIN, remainingMs / 1_000)
        await stopSidecars(uid, restSeconds)
      }
      return false
    },

    async finalView(pod) {
      const toView = (state: ContainerState): ContainerView => {
        const status = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
        const wasRunning = status.find(({ name }) => name === state.container.name)?.state?.running !== undefined
        const missingView: ContainerView = wasRunning
          ? { is: 'ended', code: 0, reason: 'Completed' } // no process: an agent without commands reported it as running
          : { is: 'waiting', reason: 'ContainerCreating' }
        return viewOf(state) ?? missingView
      }
      const { init, main, ephemeral } = await readStates(pod)
      return { init: init.map(toView), main: main.map(toView), ephemeral: ephemeral.map(toView) }
    },

    async removeRecords(uid) {
      timers.get(uid)?.cancel()
      timers.delete(uid)
      deadlinesMs.delete(uid)
      knownPods.delete(uid)
      for (const key of [...failedRuns.keys()]) if (key.startsWith(`${uid}/`)) failedRuns.delete(key)
      await Promise.all([logs, inputs].map(({ close }) => close(paths.containers(uid))))
      await disk.removeTree(paths.containers(uid))
    },

    onChange(listener) {
      notifyChange = listener
    },

    onEvent(listener) {
      recordPodEvent = listener
    },

    run: logs.run,
  }

  /** Stops the last running sidecar. The next one follows when it has exited. */
  async function stopSidecars(uid: string, graceSeconds: number): Promise<void> {
    const sidecars = (await readStoppable(uid)).filter(({ sidecarIndex }) => sidecarIndex >= 0)
    for (const sidecar of sidecars.sort((a, b) => b.sidecarIndex - a.sidecarIndex)) {
      if (!stopContainers(uid, [sidecar], graceSeconds)) return
    }
  }
}

const SIDECAR_GRACE_SECONDS_MIN = 2

interface StartError {
  readonly reason: string
  readonly message: string
}

interface StoppableContainer {
  readonly name: string
  readonly latestRun: LatestRun | undefined
  /** Undefined if the pod object is not known. */
  readonly target?: ActionTarget
  /** The position of a sidecar among the init containers, or -1 for other containers. */
  readonly sidecarIndex: number
}

function reasonOf(error: unknown): string {
  if (error instanceof ConfigError) return 'CreateContainerConfigError'
  return error instanceof ImageError ? 'ErrImageNeverPull' : 'RunContainerError'
}

const listContainers = ({ spec }: Readonly<Pod>): readonly Readonly<Container>[] => [
  ...(spec?.initContainers ?? []),
  ...(spec?.containers ?? []),
  ...listEphemeralContainers({ spec }),
]

/** An ephemeral container has the fields of a container; those that it cannot have are not set. */
const listEphemeralContainers = ({ spec }: Pick<Pod, 'spec'>): readonly Readonly<Container>[] =>
  (spec?.ephemeralContainers ?? []) as readonly Container[]

const hasWaitingState = ({ status }: Readonly<Pod>, name: string): boolean =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].some(
    (candidate) => candidate.name === name && candidate.state?.waiting !== undefined,
  )

const graceSecondsOf = ({ spec }: Readonly<Pod>): number => spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS

/** Returns the results of probes that an earlier agent wrote to this run's status. */
function findEarlierResults({ status }: Readonly<Pod>, { name }: Readonly<Container>, startedMs: number) {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  const { state, started, ready } = statuses.find((candidate) => candidate.name === name) ?? {}
  if (state?.running?.startedAt !== timestamp(startedMs)) return undefined
  return { isStarted: started === true, isReady: ready === true }
}

function recordBackOffs(
  { metadata, spec }: Readonly<Stored<Pod>>,
  { init, main }: PodView,
  record: (event: EventDetails) => void,
): void {
  const names = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name)
  for (const [index, view] of [...init, ...main].entries()) {
    if (view.is !== 'waiting' || view.reason !== 'CrashLoopBackOff') continue
    const pod = `${metadata.name}_${metadata.namespace}(${metadata.uid})`
    const message = `Back-off restarting failed container ${names[index]} in pod ${pod}`
    record({ type: 'Warning', reason: 'BackOff', message })
  }
}
