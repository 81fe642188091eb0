// Starts a command in a running container: in its mount namespace, cgroup and working directory, with its environment and
// user. terminal.ts gives the command a terminal; host-containers.ts finds the container; ../streaming serves
// `kubectl exec` with it.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { searchPath } from '../../host/run.ts'
import { signalSession } from './process-session.ts'
import { buildTerminalCommand, readTerminalPath, resizeTerminal, type TerminalSize } from './terminal.ts'
import { findTool } from './tools.ts'

export interface RunningContainer {
  /** The process that launch-process.ts started, which is in the mount namespace of the container and has its environment. */
  readonly pid: number
  /** Absolute path in the container. */
  readonly workingDir: string
  /** The cgroup.procs files to which the command writes its PID first. */
  readonly cgroupFiles: readonly string[]
  /** Whether the agent is root. Otherwise the container has its own user namespace. */
  readonly isAgentRoot: boolean
}

export interface ExecOptions {
  /** The program and its arguments. For execInContainer, with the prefix that applies the container's user. */
  readonly command: readonly string[]
  /** Whether the command reads from `stdin` of the returned process. Default: its input is empty. */
  readonly stdin?: boolean
  /** Whether the command has a terminal. Its stderr is then part of stdout. Default: false. */
  readonly tty?: boolean
  /** Initial size of the terminal. Default: it has none. */
  readonly size?: TerminalSize
}

export interface ContainerProcess {
  readonly stdin?: Writable
  readonly stdout: Readable
  /** Absent if the command has a terminal. */
  readonly stderr?: Readable
  /** Resolves when the process exits, maybe before its output ends: 128 plus the signal's number if a signal ended it. */
  readonly exitCode: Promise<number>
  /** Changes the size of the terminal. Does nothing without a terminal. */
  resize(size: TerminalSize): Promise<void>
  /** Sends the signal to all processes of the session that the command leads. Does nothing after the command has exited. */
  kill(signal: NodeJS.Signals): void
}

export class ContainerNotRunningError extends Error {
  override readonly name = 'ContainerNotRunningError'
}

/** Time for a container that has just been started to mount its volumes. After this the command is not started. */
const SETUP_MS_MAX = 10_000
const SETUP_POLL_MS = 20

// The command keeps its PID through every exec, so the PID of the child is the command's PID.
const SCRIPT = `
target=$1 user=$2 working_dir=$3 nsenter=$4; shift 4
while [ -n "$1" ]; do echo $$ > "$1" || exit 126; shift; done; shift
exec "$nsenter" --target "$target" --mount $user -- /bin/sh -c 'cd -- "$1" && shift && exec "$@"' sh "$working_dir" "$@"
`

export async function execInContainer(
  container: RunningContainer,
  { command, stdin = false, tty = false, size }: ExecOptions,
  { clock }: { readonly clock: Clock },
): Promise<ContainerProcess> {
  await waitForRoot(container, clock)
  const env = await readEnvironment(container.pid)
  const argv = [
    '/bin/sh',
    '-c',
    SCRIPT,
    'sh',
    String(container.pid),
    container.isAgentRoot ? '' : '--user --preserve-credentials',
    container.workingDir,
    findTool('nsenter'),
    ...container.cgroupFiles,
    '',
    ...command,
  ]
  const terminal = tty ? buildTerminalCommand(argv, env, size) : undefined
  const [program, ...args] = terminal?.argv ?? argv
  const child = spawn(program!, args, {
    cwd: '/',
    env: terminal?.env ?? env,
    stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', ...(tty ? ['pipe' as const] : [])],
    detached: true, // in its own session, so that all its processes can be stopped
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  return toContainerProcess(child, tty)
}

function toContainerProcess(child: ChildProcess, tty: boolean): ContainerProcess {
  const exitCode = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
  })
  child.stdin?.on('error', () => {}) // a write fails if the command exits before it has read its input; this is no error
  const terminalPath = tty ? readTerminalPath(child.stdio[3] as Readable) : undefined
  if (tty) child.stderr?.resume() // errors of script(1) itself; its exit code reports them
  return {
    stdin: child.stdin ?? undefined,
    stdout: child.stdout!,
    stderr: tty ? undefined : child.stderr!,
    exitCode,
    async resize(size) {
      const path = await terminalPath
      if (path) await resizeTerminal(path, size)
    },
    kill(signal) {
      if (child.exitCode === null && child.signalCode === null) signalSession(child.pid!, signal)
    },
  }
}

/** Waits until the container has its own root directory. Until then, a command would run in the machine's root. */
async function waitForRoot({ pid }: RunningContainer, clock: Clock): Promise<void> {
  const machineRoot = await stat('/')
  for (const deadlineMs = clock.monotonicMs() + SETUP_MS_MAX; ; await clock.sleep(SETUP_POLL_MS)) {
    const root = await stat(`/proc/${pid}/root/`).catch(() => undefined)
    if (!root) throw new ContainerNotRunningError('the container has exited')
    if (root.dev !== machineRoot.dev || root.ino !== machineRoot.ino) return
    if (clock.monotonicMs() >= deadlineMs) {
      throw new ContainerNotRunningError(`the container has not mounted its volumes within ${SETUP_MS_MAX / 1_000} s`)
    }
  }
}

/** Returns the environment with which the container was started. The default of PATH is the agent's. */
async function readEnvironment(pid: number): Promise<Record<string, string>> {
  const text = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => {
    throw new ContainerNotRunningError('the container has exited')
  })
  const entries = text.split('\0').filter(Boolean)
  const env = entries.map((entry) => {
    const separator = entry.indexOf('=')
    return [entry.slice(0, separator), entry.slice(separator + 1)] as const
  })
  return { PATH: searchPath(), ...Object.fromEntries(env) }
}
