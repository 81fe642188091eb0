// Runs containers as processes of this machine, and restarts them as the pod's restartPolicy says. Processes survive a restart of
// the agent, which finds them by their records (run-records.ts). launch.ts starts a process.

import { join, normalize } from 'node:path'
import type { Stored } from '../../api/kind.ts'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { startTicksOf } from '../../host/process-identity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import type { ContainerView, EndedRun, PodView } from '../pods/pod-status.ts'
import { openPodCgroups, type PodCgroups } from './cgroup.ts'
import { DEFAULT_LOG_LIMITS, type LogLimits, runLogRotation } from './container-logs.ts'
import { type Containers, openingOf, type VolumePaths } from './containers.ts'
import { ConfigError, commandOf, type Environment, environmentOf } from './environment.ts'
import { type LaunchMount, launch } from './launch.ts'
import { formatPid, type RunState, readRun, runFiles } from './run-records.ts'

export interface HostContainersDeps {
  readonly paths: AgentPaths
  readonly disk: NodeDisk
  readonly clock: Clock
  readonly log: Logger
  /** URL of the API server, for KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of the containers. */
  readonly serverUrl?: string
  /** Default: the limits of the kubelet. */
  readonly logLimits?: LogLimits
  /** Default: the cgroups of this machine. */
  readonly cgroups?: PodCgroups
}

const DIRECTORY_MODE = 0o750
const POLL_MS = 1_000 // interval for processes of an earlier run of the agent, whose exit causes no event
const RESTART_MS_MIN = 10_000
const RESTART_MS_MAX = 300_000
const KILL_POLL_MS = 200

interface LatestRun {
  /** The index of the run, starting at 0. */
  readonly run: number
  readonly state: RunState
  /** The previous run. */
  readonly last?: EndedRun
}

export async function createHostContainers(deps: HostContainersDeps): Promise<Containers> {
  const { paths, disk, clock, log } = deps
  const isRoot = process.getuid?.() === 0
  const cgroups: PodCgroups & { message?: string } = deps.cgroups ?? (await openPodCgroups())
  if (cgroups.message) log.warn({ reason: cgroups.message }, 'commands run without a cgroup')
  const serviceEnvironment = deps.serverUrl ? serviceEnvironmentOf(deps.serverUrl) : {}
  const childPids = new Set<number>() // processes whose exit causes an event
  const timers = new Map<string, () => void>()
  const deadlinesMs = new Map<string, number>()
  let notifyChange: (uid: string) => void = () => {}

  const notifyAfter = (uid: string, ms: number) => {
    timers.get(uid)?.()
    timers.set(
      uid,
      clock.after(ms, () => {
        timers.delete(uid)
        notifyChange(uid)
      }),
    )
  }

  const filesOf = (uid: string, name: string, run: number) => runFiles(join(paths.container(uid, name), String(run)))

  async function readLatestRun(uid: string, name: string): Promise<LatestRun | undefined> {
    const runs = (await disk.list(paths.container(uid, name))).map(Number).filter(Number.isInteger)
    for (const run of runs.sort((a, b) => b - a)) {
      const state = await readRun(filesOf(uid, name, run), disk)
      if (!state) continue
      const previousRun = run > 0 ? await readRun(filesOf(uid, name, run - 1), disk) : undefined
      return { run, state, last: previousRun?.is === 'ended' ? endedRun(previousRun) : undefined }
    }
    return undefined
  }

  async function start(pod: Readonly<Stored<Pod>>, container: Readonly<Container>, run: number, volumes: VolumePaths) {
    const uid = pod.metadata.uid
    const env = environmentOf(pod, container, serviceEnvironment)
    const command = withUser(pod, container, commandOf(container, env), isRoot)
    const files = filesOf(uid, container.name, run)
    const scratch = join(files.directory, 'scratch')
    await removeEarlierRuns(uid, container.name, run)
    await disk.makeDirectory(scratch, DIRECTORY_MODE)
    const mounts = await prepareMounts(uid, container, volumes)
    const cgroupFiles = isRoot ? await cgroups.create(uid) : []
    await disk.writeText(files.started, `${clock.nowMs()}\n`)
    const launchedProcess = await launch(
      {
        command,
        env,
        workingDir: container.workingDir || '/',
        mounts,
        cgroupFiles,
        logFile: files.log,
        pidFile: files.pid,
        exitFile: files.exit,
        scratch,
      },
      { isRoot },
    )
    childPids.add(launchedProcess.pid)
    launchedProcess.onExit(() => {
      childPids.delete(launchedProcess.pid)
      notifyChange(uid)
    })
    await disk.writeText(files.pid, formatPid(launchedProcess.pid, await startTicksOf(launchedProcess.pid)))
  }

  /** Keeps the records and the log of the previous run only, so that a container that always restarts does not fill the disk. */
  async function removeEarlierRuns(uid: string, name: string, run: number): Promise<void> {
    for (const entry of await disk.list(paths.container(uid, name))) {
      if (Number(entry) < run - 1) await disk.removeTree(join(paths.container(uid, name), entry))
    }
  }

  async function prepareMounts(
    uid: string,
    container: Readonly<Container>,
    volumes: VolumePaths,
  ): Promise<LaunchMount[]> {
    const mounts: LaunchMount[] = []
    for (const [index, { name, mountPath, subPath, readOnly = false }] of (container.volumeMounts ?? []).entries()) {
      const volume = volumes.get(name)
      if (!volume) continue
      if (normalize(mountPath) === '/') {
        throw new ConfigError(
          `volumeMount "${name}": a volume at / would hide the programs of the machine; use another mountPath`,
        )
      }
      let source = volume.path
      const opening = openingOf(volume, subPath ?? '')
      if (isRoot && (subPath || volume.isHostPath)) {
        source = join(paths.subPaths(uid), name, container.name, String(index))
        await disk.bindSubPath(...opening, source)
      } else if (subPath) source = await disk.makeSubPath(...opening)
      mounts.push({ source, target: mountPath, readOnly: readOnly || volume.readOnly })
    }
    for (const { name, devicePath } of container.volumeDevices ?? []) {
      const volume = volumes.get(name)
      if (volume) mounts.push({ source: volume.path, target: devicePath, readOnly: false })
    }
    // A nested mount path is longer than the path that contains it, and must be mounted after it.
    return mounts.sort((a, b) => a.target.length - b.target.length)
  }

  /** Starts a container, or restarts it after its backoff. */
  async function advanceContainer(
    pod: Readonly<Stored<Pod>>,
    container: Readonly<Container>,
    volumes: VolumePaths,
    policy: 'Always' | 'OnFailure' | 'Never',
  ): Promise<ContainerView> {
    const uid = pod.metadata.uid
    try {
      const latestRun = await readLatestRun(uid, container.name)
      if (!latestRun) {
        await start(pod, container, 0, volumes)
        return viewOf((await readLatestRun(uid, container.name))!)
      }
      const { state, run } = latestRun
      if (state.is === 'running') {
        if (!childPids.has(state.pid)) notifyAfter(uid, POLL_MS)
        return viewOf(latestRun)
      }
      const shouldRestart = policy === 'Always' || (policy === 'OnFailure' && state.code !== 0)
      if (!shouldRestart) return viewOf(latestRun)
      const waitMs = state.startedMs + restartDelayMs(run) - clock.nowMs()
      if (waitMs > 0) {
        notifyAfter(uid, waitMs)
        const message =
          `back-off ${Math.ceil(waitMs / 1_000)}s restarting failed container=${container.name}. ` +
          `Its output is in ${filesOf(uid, container.name, run).log}`
        return { is: 'waiting', reason: 'CrashLoopBackOff', message, restarts: run, last: endedRun(state) }
      }
      await start(pod, container, run + 1, volumes)
      return viewOf((await readLatestRun(uid, container.name))!)
    } catch (error) {
      const reason = error instanceof ConfigError ? 'CreateContainerConfigError' : 'RunContainerError'
      notifyAfter(uid, RESTART_MS_MIN)
      return { is: 'waiting', reason, message: (error as Error).message }
    }
  }

  async function mapContainers(
    pod: Readonly<Stored<Pod>>,
    toView: (container: Readonly<Container>) => Promise<ContainerView>,
  ) {
    const mapEach = async (containers: readonly Readonly<Container>[]) => {
      const results: ContainerView[] = []
      for (const container of containers) results.push(await toView(container))
      return results
    }
    return { init: await mapEach(pod.spec?.initContainers ?? []), main: await mapEach(pod.spec?.containers ?? []) }
  }

  return {
    async prepare(uid) {
      if (isRoot) await cgroups.create(uid)
    },

    async advance(pod, volumes): Promise<PodView> {
      const initializingView: ContainerView = { is: 'waiting', reason: 'PodInitializing' }
      const policy = pod.spec?.restartPolicy ?? 'Always'
      const init: ContainerView[] = []
      for (const container of pod.spec?.initContainers ?? []) {
        const isNext = init.every((view) => view.is === 'ended' && view.code === 0)
        const initPolicy = policy === 'Never' ? 'Never' : 'OnFailure'
        if (!isNext) init.push(initializingView)
        else if (hasNoCommand(container)) init.push({ is: 'ended', code: 0, reason: 'Completed' })
        else init.push(await advanceContainer(pod, container, volumes, initPolicy))
      }
      const isInitialized = init.every((view) => view.is === 'ended' && view.code === 0)
      const main: ContainerView[] = []
      for (const container of pod.spec?.containers ?? []) {
        if (!isInitialized) main.push(initializingView)
        else if (hasNoCommand(container)) main.push({ is: 'running' })
        else main.push(await advanceContainer(pod, container, volumes, policy))
      }
      return { init, main }
    },

    async stop(uid, graceSeconds) {
      const runningPids: number[] = []
      for (const name of await disk.list(paths.containers(uid))) {
        const latestRun = await readLatestRun(uid, name)
        if (latestRun?.state.is === 'running') runningPids.push(latestRun.state.pid)
      }
      if (runningPids.length === 0) {
        for (const pid of await cgroups.processes(uid)) kill(pid, 'SIGKILL') // processes that outlived their command
        if ((await cgroups.processes(uid)).length > 0) {
          notifyAfter(uid, KILL_POLL_MS)
          return false
        }
        await cgroups.remove(uid)
        deadlinesMs.delete(uid)
        return true
      }
      const previousDeadlineMs = deadlinesMs.get(uid)
      const deadlineMs = Math.min(
        previousDeadlineMs ?? Number.POSITIVE_INFINITY,
        clock.monotonicMs() + graceSeconds * 1_000,
      )
      if (previousDeadlineMs === undefined) for (const pid of runningPids) kill(-pid, 'SIGTERM')
      deadlinesMs.set(uid, deadlineMs)
      const remainingMs = deadlineMs - clock.monotonicMs()
      if (remainingMs <= 0) {
        const processGroups = runningPids.map((pid) => -pid)
        for (const pid of [...processGroups, ...(await cgroups.processes(uid))]) kill(pid, 'SIGKILL')
      }
      notifyAfter(uid, remainingMs <= 0 ? KILL_POLL_MS : Math.min(POLL_MS, remainingMs))
      return false
    },

    finalView: (pod) =>
      mapContainers(pod, async (container) => {
        const latestRun = await readLatestRun(pod.metadata.uid, container.name)
        if (latestRun) return viewOf(latestRun)
        return hasNoCommand(container)
          ? { is: 'ended', code: 0, reason: 'Completed' }
          : { is: 'waiting', reason: 'ContainerCreating' } // never started
      }),

    async removeRecords(uid) {
      timers.get(uid)?.()
      timers.delete(uid)
      deadlinesMs.delete(uid)
      await disk.removeTree(paths.containers(uid))
    },

    onChange(listener) {
      notifyChange = listener
    },

    run: (signal) => runLogRotation({ paths, disk, clock, log, limits: deps.logLimits ?? DEFAULT_LOG_LIMITS }, signal),
  }
}

/** Returns the variables with which client libraries find the API server from within a pod. */
export function serviceEnvironmentOf(serverUrl: string): Environment {
  const { hostname, port } = new URL(serverUrl)
  const host = hostname.replace(/^\[|\]$/g, '') // client libraries add the brackets of an IPv6 address
  return { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port || '443' }
}

/** Whether the container has no command. Images, which could define one, are not supported, so no process is started. */
const hasNoCommand = ({ command = [] }: Readonly<Container>) => command.length === 0

/** Returns the time from the start of a run to the next: 10 s for the first run, doubled with each run, at most 5 min. */
const restartDelayMs = (run: number): number => Math.min(RESTART_MS_MIN * 2 ** run, RESTART_MS_MAX)

function viewOf({ run: restarts, state, last }: LatestRun): ContainerView {
  const { startedMs } = state
  if (state.is === 'running') return { is: 'running', startedMs, restarts, last }
  return { is: 'ended', ...endedRun(state), restarts }
}

function endedRun({ code, startedMs, isLost }: Extract<RunState, { is: 'ended' }>): EndedRun {
  return { code, reason: isLost ? 'ContainerStatusUnknown' : code === 0 ? 'Completed' : 'Error', startedMs }
}

/** Prefixes the command with setpriv, to apply the user and groups of the security context. */
function withUser(
  pod: Readonly<Stored<Pod>>,
  container: Readonly<Container>,
  command: string[],
  isRoot: boolean,
): string[] {
  const podContext = pod.spec?.securityContext ?? {}
  const user = container.securityContext?.runAsUser ?? podContext.runAsUser
  const group = container.securityContext?.runAsGroup ?? podContext.runAsGroup
  const runAsNonRoot = container.securityContext?.runAsNonRoot ?? podContext.runAsNonRoot ?? false
  if (runAsNonRoot && (user === 0 || (user === undefined && isRoot))) {
    throw new ConfigError('container has runAsNonRoot and would run as root; set runAsUser')
  }
  if (user === undefined && group === undefined && podContext.fsGroup === undefined) return command
  if (!isRoot) {
    if (user === undefined || user === process.getuid?.()) return command
    throw new ConfigError(`only root can run a command as user ${user}, but this node agent is not root`)
  }
  const groups = [
    ...(podContext.supplementalGroups ?? []),
    ...(podContext.fsGroup === undefined ? [] : [podContext.fsGroup]),
  ]
  const groupOptions = groups.length > 0 ? ['--groups', groups.join(',')] : ['--clear-groups']
  return ['setpriv', '--reuid', String(user ?? 0), '--regid', String(group ?? 0), ...groupOptions, '--', ...command]
}

/** Sends the signal. Ignores a process that has already exited. */
function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
