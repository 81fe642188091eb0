// Finds the processes that a server left on the machine: those of pods (`--run-commands`), drivers that it started
// (`--driver`), and programs such as mkfs that the killed server was running. A process is identified by what the kernel
// reports about it, not by its name alone.
import { readdir, readFile, readlink } from 'node:fs/promises'
import { parseMountInfo } from '../../../host/mountinfo.ts'
import { identifyProcess, type ProcessIdentity } from '../../../host/process-identity.ts'
import { SOCKET_VARIABLE } from '../../../processes/server/drivers/orphaned-process.ts'

export interface OrphanedProcess extends ProcessIdentity {
  readonly kind: 'pod' | 'driver' | 'tool'
  readonly command: string
  /** UID in the name of its cgroup, if it has the cgroup of a pod. */
  readonly podUid?: string
}

export interface ProcessMarks {
  /** Directory of the nodes, with symbolic links resolved. */
  readonly nodesDir: string
  readonly podUids: ReadonlySet<string>
  /** Loop devices of the data directory. */
  readonly devices: readonly string[]
}

/** What the kernel reports about a process. Unreadable parts, of other users' processes, are empty. */
export interface ProcessView {
  readonly cgroup: string
  readonly args: readonly string[]
  /** Names of the environment variables. */
  readonly variables: readonly string[]
  /** Value of the environment variable that names a driver's socket. */
  readonly driverSocket: string
  /** Mount table, if the process has another mount namespace than this one. */
  readonly mountInfo: string
  readonly session: number
}

export async function findOrphanedProcesses(marks: ProcessMarks): Promise<OrphanedProcess[]> {
  const ownNamespace = await readlink('/proc/self/ns/mnt').catch(() => '')
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const views = new Map<number, ProcessView>()
  for (const pid of pids) if (pid !== process.pid) views.set(pid, await readView(pid, ownNamespace))

  const kinds = new Map<number, OrphanedProcess['kind']>()
  for (const [pid, view] of views) {
    if (isPodProcess(view, marks)) kinds.set(pid, 'pod')
    else if (isDriverProcess(view, marks)) kinds.set(pid, 'driver')
    else if (isTool(view, marks)) kinds.set(pid, 'tool')
  }
  // The command of a container runs in its own session, so the other processes of the session belong to it.
  for (const [pid, { session }] of views) if (kinds.get(session) === 'pod') kinds.set(pid, 'pod')
  return Promise.all(
    [...kinds].map(async ([pid, kind]) => {
      const { args, cgroup } = views.get(pid)!
      const podUid = podUidOf(cgroup)
      const command = args.join(' ').slice(0, COMMAND_LENGTH_MAX)
      return { ...(await identifyProcess(pid)), kind, command, ...(podUid ? { podUid } : {}) }
    }),
  )
}

/**
 * A process of a pod is in the cgroup of the pod, or its root file system has its writable layer in the directory of the
 * container, or it is the shell that supervises the container and has the container's files as arguments.
 */
export function isPodProcess(view: ProcessView, { nodesDir, podUids }: ProcessMarks): boolean {
  const uid = podUidOf(view.cgroup)
  if (uid !== undefined && podUids.has(uid)) return true
  const isContainerPath = (path: string) =>
    path.startsWith(`${nodesDir}/`) && /\/agent\/pods\/[^/]+\/containers\/[^/]+\//.test(path.slice(nodesDir.length))
  const files = view.args.filter(isContainerPath)
  if (files.some((path) => path.endsWith('/pid')) && files.some((path) => path.endsWith('/scratch'))) return true
  if (!view.mountInfo.includes('upperdir=')) return false
  return parseMountInfo(view.mountInfo).some(({ type, superOptions }) =>
    superOptions.some((option) => type === 'overlay' && isContainerPath(option.replace(/^upperdir=/, ''))),
  )
}

const podUidOf = (cgroup: string): string | undefined => /\/stowage-pods\/pod([^/\n]+)/.exec(cgroup)?.[1]

/** A driver that the server started has the path of a socket in a node's directory in its environment. */
export const isDriverProcess = ({ driverSocket }: ProcessView, { nodesDir }: ProcessMarks): boolean =>
  driverSocket.startsWith(`${nodesDir}/`)

/** Longer commands are truncated in the output. */
const COMMAND_LENGTH_MAX = 80

/** The server runs programs with exactly these variables (host/run.ts). */
const TOOL_VARIABLES = ['LC_ALL', 'PATH']

/** A program that the server was running has only these variables, and names a file or device of the data directory. */
export function isTool({ args, variables }: ProcessView, { nodesDir, devices }: ProcessMarks): boolean {
  if (variables.length !== TOOL_VARIABLES.length || !TOOL_VARIABLES.every((name) => variables.includes(name))) {
    return false
  }
  return args.some((argument) => argument.startsWith(`${nodesDir}/`) || devices.includes(argument))
}

async function readView(pid: number, ownNamespace: string): Promise<ProcessView> {
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
  const namespace = await readlink(`/proc/${pid}/ns/mnt`).catch(() => ownNamespace)
  const stat = await read('stat')
  const environment = (await read('environ')).split('\0').slice(0, -1)
  const socketPrefix = `${SOCKET_VARIABLE}=`
  return {
    cgroup: await read('cgroup'),
    args: (await read('cmdline')).split('\0').slice(0, -1),
    variables: environment.map((entry) => entry.split('=')[0]!),
    driverSocket: environment.find((entry) => entry.startsWith(socketPrefix))?.slice(socketPrefix.length) ?? '',
    mountInfo: namespace === ownNamespace ? '' : await read('mountinfo'),
    session: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3] ?? 0),
  }
}
