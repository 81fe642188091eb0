// Runs containers as processes of this machine, if the operator enabled it: one process per container, restarted by the
// pod's restartPolicy, in the pod's cgroup. A process survives a restart of the agent and is found by its records.
// Starting a process is launch.ts, its records are records.ts.
import { join, normalize } from 'node:path'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import type { ContainerView, EndedRun, PodView } from '../pods/pod-status.ts'
import { openPodCgroups, type PodCgroups } from './cgroup.ts'
import type { Containers, VolumePaths } from './containers.ts'
import { ConfigError, commandOf, environmentOf } from './environment.ts'
import { type LaunchMount, launch } from './launch.ts'
import { formatPid, type RunState, readRun, runFiles, startTicksOf } from './records.ts'

export interface HostContainersDeps {
  readonly paths: AgentPaths
  readonly disk: NodeDisk
  readonly clock: Clock
  readonly log: Logger
  /** Default: those of this machine. */
  readonly cgroups?: PodCgroups
}

const DIRECTORY_MODE = 0o750
const LOOK_MS = 1_000 // polls processes of an earlier run of the agent, whose exit is not reported
const FIRST_RESTART_MS = 10_000
const LAST_RESTART_MS = 300_000
const KILL_LOOK_MS = 200

interface Latest {
  /** Starts at 0. */
  readonly run: number
  readonly state: RunState
  /** How the previous run ended. */
  readonly last?: EndedRun
}

export async function createHostContainers(deps: HostContainersDeps): Promise<Containers> {
  const { paths, disk, clock, log } = deps
  const isRoot = process.getuid?.() === 0
  const cgroups: PodCgroups & { because?: string } = deps.cgroups ?? (await openPodCgroups())
  if (cgroups.because) log.warn({ because: cgroups.because }, 'commands run without a cgroup')
  const ours = new Set<number>() // child processes, whose exit is reported
  const timers = new Map<string, () => void>()
  const deadlines = new Map<string, number>()
  let changed: (uid: string) => void = () => {}

  const wakeIn = (uid: string, ms: number) => {
    timers.get(uid)?.()
    timers.set(
      uid,
      clock.after(ms, () => {
        timers.delete(uid)
        changed(uid)
      }),
    )
  }

  const filesOf = (uid: string, name: string, run: number) => runFiles(join(paths.container(uid, name), String(run)))

  async function latestOf(uid: string, name: string): Promise<Latest | undefined> {
    const runs = (await disk.list(paths.container(uid, name))).map(Number).filter(Number.isInteger)
    for (const run of runs.sort((a, b) => b - a)) {
      const state = await readRun(filesOf(uid, name, run), disk)
      if (!state) continue
      const before = run > 0 ? await readRun(filesOf(uid, name, run - 1), disk) : undefined
      return { run, state, ...(before?.is === 'ended' ? { last: endedRun(before) } : {}) }
    }
    return undefined
  }

  async function start(pod: Readonly<Pod>, container: Readonly<Container>, run: number, volumes: VolumePaths) {
    const uid = pod.metadata.uid ?? ''
    const env = environmentOf(pod, container)
    const command = asUser(pod, container, commandOf(container, env), isRoot)
    const files = filesOf(uid, container.name, run)
    const scratch = join(files.directory, 'scratch')
    await disk.makeDirectory(scratch, DIRECTORY_MODE)
    const mounts = await mountsOf(uid, container, volumes)
    const cgroupFiles = isRoot ? await cgroups.make(uid) : []
    await disk.writeText(files.started, `${clock.nowMs()}\n`)
    const launched = await launch(
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
    ours.add(launched.pid)
    launched.onExit(() => {
      ours.delete(launched.pid)
      changed(uid)
    })
    await disk.writeText(files.pid, formatPid(launched.pid, await startTicksOf(launched.pid)))
  }

  async function mountsOf(uid: string, container: Readonly<Container>, volumes: VolumePaths): Promise<LaunchMount[]> {
    const mounts: LaunchMount[] = []
    for (const [index, { name, mountPath, subPath, readOnly = false }] of (container.volumeMounts ?? []).entries()) {
      const volume = volumes.get(name)
      if (!volume) continue
      if (normalize(mountPath) === '/') {
        throw new ConfigError(
          `volumeMount "${name}": a volume at / would hide the programs of the machine. Mount it elsewhere`,
        )
      }
      let from = volume.path
      if (subPath && isRoot) {
        from = join(paths.subPaths(uid), name, container.name, String(index))
        await disk.bindSubPath(volume.path, subPath, from)
      } else if (subPath) from = await disk.makeSubPath(volume.path, subPath)
      mounts.push({ from, to: mountPath, readOnly: readOnly || volume.readOnly })
    }
    for (const { name, devicePath } of container.volumeDevices ?? []) {
      const volume = volumes.get(name)
      if (volume) mounts.push({ from: volume.path, to: devicePath, readOnly: false })
    }
    // Sorted: a mount path inside another must be mounted after it.
    return mounts.sort((a, b) => a.to.length - b.to.length)
  }

  /** Starts a container, or restarts it when its backoff has passed. */
  async function step(
    pod: Readonly<Pod>,
    container: Readonly<Container>,
    volumes: VolumePaths,
    { restarts: policy }: { readonly restarts: 'Always' | 'OnFailure' | 'Never' },
  ): Promise<ContainerView> {
    const uid = pod.metadata.uid ?? ''
    try {
      const latest = await latestOf(uid, container.name)
      if (!latest) {
        await start(pod, container, 0, volumes)
        return viewOf((await latestOf(uid, container.name))!)
      }
      const { state, run } = latest
      if (state.is === 'running') {
        if (!ours.has(state.pid)) wakeIn(uid, LOOK_MS)
        return viewOf(latest)
      }
      const startsAgain = policy === 'Always' || (policy === 'OnFailure' && state.code !== 0)
      if (!startsAgain) return viewOf(latest)
      const waitMs = state.startedMs + restartDelayMs(run) - clock.nowMs()
      if (waitMs > 0) {
        wakeIn(uid, waitMs)
        const message =
          `back-off ${Math.ceil(waitMs / 1_000)}s restarting failed container=${container.name}. ` +
          `What it printed is in ${filesOf(uid, container.name, run).log}`
        return { is: 'waiting', reason: 'CrashLoopBackOff', message, restarts: run, last: endedRun(state) }
      }
      await start(pod, container, run + 1, volumes)
      return viewOf((await latestOf(uid, container.name))!)
    } catch (error) {
      const reason = error instanceof ConfigError ? 'CreateContainerConfigError' : 'RunContainerError'
      wakeIn(uid, FIRST_RESTART_MS)
      return { is: 'waiting', reason, message: (error as Error).message }
    }
  }

  async function views(pod: Readonly<Pod>, of: (container: Readonly<Container>) => Promise<ContainerView>) {
    const all = async (containers: readonly Readonly<Container>[]) => {
      const found: ContainerView[] = []
      for (const container of containers) found.push(await of(container))
      return found
    }
    return { init: await all(pod.spec?.initContainers ?? []), main: await all(pod.spec?.containers ?? []) }
  }

  return {
    async advance(pod, volumes): Promise<PodView> {
      const waits: ContainerView = { is: 'waiting', reason: 'PodInitializing' }
      const policy = pod.spec?.restartPolicy ?? 'Always'
      const init: ContainerView[] = []
      for (const container of pod.spec?.initContainers ?? []) {
        const isNext = init.every((view) => view.is === 'ended' && view.code === 0)
        const restarts = policy === 'Never' ? 'Never' : 'OnFailure'
        if (!isNext) init.push(waits)
        else if (isEmpty(container)) init.push({ is: 'ended', code: 0, reason: 'Completed' })
        else init.push(await step(pod, container, volumes, { restarts }))
      }
      const isInitialized = init.every((view) => view.is === 'ended' && view.code === 0)
      const main: ContainerView[] = []
      for (const container of pod.spec?.containers ?? []) {
        if (!isInitialized) main.push(waits)
        else if (isEmpty(container)) main.push({ is: 'running' })
        else main.push(await step(pod, container, volumes, { restarts: policy }))
      }
      return { init, main }
    },

    async stop(uid, graceSeconds) {
      const running: number[] = []
      for (const name of await disk.list(paths.containers(uid))) {
        const latest = await latestOf(uid, name)
        if (latest?.state.is === 'running') running.push(latest.state.pid)
      }
      if (running.length === 0) {
        for (const pid of await cgroups.processes(uid)) kill(pid, 'SIGKILL') // processes that a command left behind
        if ((await cgroups.processes(uid)).length > 0) {
          wakeIn(uid, KILL_LOOK_MS)
          return false
        }
        await cgroups.remove(uid)
        deadlines.delete(uid)
        return true
      }
      const known = deadlines.get(uid)
      const deadlineMs = Math.min(known ?? Number.POSITIVE_INFINITY, clock.monotonicMs() + graceSeconds * 1_000)
      if (known === undefined) for (const pid of running) kill(-pid, 'SIGTERM')
      deadlines.set(uid, deadlineMs)
      const leftMs = deadlineMs - clock.monotonicMs()
      if (leftMs <= 0) {
        for (const pid of [...running.map((one) => -one), ...(await cgroups.processes(uid))]) kill(pid, 'SIGKILL')
      }
      wakeIn(uid, leftMs <= 0 ? KILL_LOOK_MS : Math.min(LOOK_MS, leftMs))
      return false
    },

    ended: (pod) =>
      views(pod, async ({ name }) => {
        const latest = await latestOf(pod.metadata.uid ?? '', name)
        return latest ? viewOf(latest) : { is: 'ended', code: 0, reason: 'Completed' }
      }),

    async forget(uid) {
      timers.get(uid)?.()
      timers.delete(uid)
      deadlines.delete(uid)
      await disk.removeScratch(paths.containers(uid))
    },

    onChange(run) {
      changed = run
    },
  }
}

/** A container without a command: its image would define it, but images are not supported; it counts as running. */
const isEmpty = ({ command = [] }: Readonly<Container>) => command.length === 0

/** 10 s after the first run, doubling up to 5 min. */
export const restartDelayMs = (run: number): number => Math.min(FIRST_RESTART_MS * 2 ** run, LAST_RESTART_MS)

function viewOf({ run: restarts, state, last }: Latest): ContainerView {
  const { startedMs } = state
  if (state.is === 'running') return { is: 'running', startedMs, restarts, ...(last ? { last } : {}) }
  return { is: 'ended', ...endedRun(state), restarts }
}

function endedRun({ code, startedMs, isLost }: Extract<RunState, { is: 'ended' }>): EndedRun {
  return { code, reason: isLost ? 'ContainerStatusUnknown' : code === 0 ? 'Completed' : 'Error', startedMs }
}

/** Applies user and groups of the security context. */
function asUser(pod: Readonly<Pod>, container: Readonly<Container>, command: string[], isRoot: boolean): string[] {
  const ofPod = pod.spec?.securityContext ?? {}
  const user = container.securityContext?.runAsUser ?? ofPod.runAsUser
  const group = container.securityContext?.runAsGroup ?? ofPod.runAsGroup
  const mustNotBeRoot = container.securityContext?.runAsNonRoot ?? ofPod.runAsNonRoot ?? false
  if (mustNotBeRoot && (user === 0 || (user === undefined && isRoot))) {
    throw new ConfigError('container has runAsNonRoot and would run as root: set runAsUser')
  }
  if (user === undefined && group === undefined && ofPod.fsGroup === undefined) return command
  if (!isRoot) {
    if (user === undefined || user === process.getuid?.()) return command
    throw new ConfigError(`only root can run a command as user ${user}, and this node agent is not root`)
  }
  const groups = [...(ofPod.supplementalGroups ?? []), ...(ofPod.fsGroup === undefined ? [] : [ofPod.fsGroup])]
  const extra = groups.length > 0 ? ['--groups', groups.join(',')] : ['--clear-groups']
  return ['setpriv', '--reuid', String(user ?? 0), '--regid', String(group ?? 0), ...extra, '--', ...command]
}

/** Ignores a process that has exited already. */
function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
