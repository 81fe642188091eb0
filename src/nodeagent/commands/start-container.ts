// Starts a run of a container: computes its environment, command and user, prepares its mounts, writes its records, and waits
// until its command runs. launch-process.ts starts the process.
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Stored } from '../../api/kind.ts'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { readStartTicks } from '../../host/process-identity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import type { NodeResources } from '../pods/downward-fields.ts'
import type { EntryReader } from '../pods/read-entries.ts'
import { findUnsupportedActions } from './actions.ts'
import type { PodCgroups } from './cgroup.ts'
import type { ContainerInputs } from './container-input.ts'
import type { ContainerLogs } from './container-logs.ts'
import { prepareMounts } from './container-mounts.ts'
import { buildCommand, ConfigError, type Environment, readEnvironment } from './environment.ts'
import { describeUnknownImage, findImage, type ImageCommand } from './images.ts'
import { type LaunchedProcess, launch } from './launch-process.ts'
import type { PlannedStart } from './plan-containers.ts'
import { formatPid, formatStarted, type RunFiles, readRun } from './run-records.ts'
import { findProgram, findTool } from './tools.ts'
import type { VolumePaths } from './volume-path.ts'

export interface ContainerSources {
  readonly paths: AgentPaths
  readonly disk: NodeDisk
  readonly clock: Clock
  /** Reads ConfigMaps and Secrets for environment variables. */
  readonly entries: EntryReader
  readonly resources: NodeResources
  /** Address of the machine, which its pods share. */
  readonly address: string
  /** The commands of images, in addition to those that images.ts lists. */
  readonly imageCommands?: readonly ImageCommand[]
  /** URL of the API server, for KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of the containers. */
  readonly serverUrl?: string
}

export interface ContainerStarterDeps extends ContainerSources {
  readonly isRoot: boolean
  readonly cgroups: PodCgroups
  readonly logs: ContainerLogs
  readonly inputs: ContainerInputs
  filesOf(uid: string, name: string, run: number): RunFiles
  onExit(uid: string): void
}

/** Thrown for a container without a command if its image is unknown. */
export class ImageError extends Error {
  override readonly name = 'ImageError'
}

const DIRECTORY_MODE = 0o750
/** Time for a container's mounts. Afterwards, a later reconcile checks again. */
const START_MS_MAX = 10_000
const START_POLL_MS = 5

export async function createContainerStarter(deps: ContainerStarterDeps) {
  const { paths, disk, clock, isRoot, cgroups, logs, inputs, filesOf } = deps
  const bashPath = findProgram('bash')
  const bash = bashPath && (await realpath(bashPath))
  const base = deps.serverUrl ? serviceEnvironmentOf(deps.serverUrl) : {}
  const childPids = new Set<number>() // processes whose exit causes an event

  /** Removes all runs before the previous one, so that a container that always restarts does not fill the disk. */
  async function removeEarlierRuns(uid: string, name: string, run: number): Promise<void> {
    for (const entry of await disk.list(paths.container(uid, name))) {
      if (Number(entry) >= run - 1) continue
      const directory = join(paths.container(uid, name), entry)
      await Promise.all([logs.close(directory), inputs.close(directory)])
      await disk.removeTree(directory)
    }
  }

  /** Waits until the process has written its PID. With a terminal it is not the process that the agent started. */
  async function waitForPid({ pid }: RunFiles, launchedProcess: LaunchedProcess): Promise<void> {
    let hasExited = false
    launchedProcess.onExit(() => {
      hasExited = true
    })
    while (!hasExited && (await disk.readText(pid)) === undefined) await clock.sleep(START_POLL_MS)
  }

  /** Returns whether the command runs, or has run. */
  async function waitUntilStarted(files: RunFiles): Promise<boolean> {
    const deadlineMs = clock.monotonicMs() + START_MS_MAX
    for (;;) {
      const state = await readRun(files, disk)
      if (state?.is === 'ended') return state.startError === undefined && !state.isLost
      if (state?.is === 'running') return true
      if (clock.monotonicMs() > deadlineMs) return false
      await clock.sleep(START_POLL_MS)
    }
  }

  return {
    isChild: (pid: number) => childPids.has(pid),

    /** Returns whether the command was started. Throws if the container cannot be created. */
    async start(
      pod: Readonly<Stored<Pod>>,
      { container, run, restartDelayMs }: PlannedStart,
      volumes: VolumePaths,
    ): Promise<boolean> {
      const uid = pod.metadata.uid
      const [unsupported] = findUnsupportedActions(container)
      if (unsupported) throw new ConfigError(`${unsupported} is not supported by this node agent; use exec`)
      const image = findImage(container.image ?? '', deps.imageCommands ?? [])
      const env = await readEnvironment(pod, container, { ...deps, base })
      const command = buildCommand(container, env, image)
      if (command.length === 0 || (!container.command?.length && !image)) {
        throw new ImageError(describeUnknownImage(container.image ?? '', container.name))
      }
      const files = filesOf(uid, container.name, run)
      const scratch = join(files.directory, 'scratch')
      await removeEarlierRuns(uid, container.name, run)
      await disk.makeDirectory(scratch, DIRECTORY_MODE)
      const mounts = await prepareMounts({ uid, container, env, image, files }, volumes, { ...deps, bash })
      const cgroupFiles = isRoot ? await cgroups.create(uid) : []
      const tty = container.tty ?? false
      const stdin = await inputs.open(files, container)
      const stdio = { stdin, ...(await logs.start(files)) }
      const launchOptions = {
        command: withUser(pod, container, command, isRoot),
        program: command[0]!,
        env,
        workingDir: container.workingDir || '/',
        mounts,
        cgroupFiles,
        stdio,
        tty,
        pidFile: files.pid,
        exitFile: files.exit,
        startFile: files.start,
        hasReadOnlyRoot: container.securityContext?.readOnlyRootFilesystem ?? false,
        scratch,
      }
      await disk.writeText(files.start, '')
      await disk.writeText(files.started, formatStarted({ startedMs: clock.nowMs(), restartDelayMs }))
      const launchedProcess = await launch(launchOptions, { isRoot })
      childPids.add(launchedProcess.pid)
      launchedProcess.onExit(() => {
        childPids.delete(launchedProcess.pid)
        deps.onExit(uid)
      })
      if (tty) await waitForPid(files, launchedProcess)
      else await disk.writeText(files.pid, formatPid(launchedProcess.pid, await readStartTicks(launchedProcess.pid)))
      return waitUntilStarted(files)
    },
  }
}

/** Returns the variables with which client libraries find the API server from within a pod. */
export function serviceEnvironmentOf(serverUrl: string): Environment {
  const { hostname, port } = new URL(serverUrl)
  const host = hostname.replace(/^\[|\]$/g, '') // client libraries add the brackets of an IPv6 address
  return { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port || '443' }
}

/** Prefixes the command with setpriv, to apply the user and groups of the security context. */
export function withUser(
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
  const groups = [
    ...(podContext.supplementalGroups ?? []),
    ...(podContext.fsGroup === undefined ? [] : [podContext.fsGroup]),
  ]
  if (user === undefined && group === undefined && groups.length === 0) return command
  if (!isRoot) {
    if (user === undefined || user === process.getuid?.()) return command
    throw new ConfigError(`only root can run a command as user ${user}, but this node agent is not root`)
  }
  const groupOptions = groups.length > 0 ? ['--groups', groups.join(',')] : ['--clear-groups']
  return [
    findTool('setpriv'),
    '--reuid',
    String(user ?? 0),
    '--regid',
    String(group ?? 0),
    ...groupOptions,
    '--',
    ...command,
  ]
}
