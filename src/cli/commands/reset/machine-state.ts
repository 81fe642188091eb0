// Finds the processes, mounts, loop devices and cgroups of the nodes of a data directory on this machine. It reads the
// kernel's tables and the directories on disk, so it does not depend on a server or on complete records.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readTextIfPresent } from '../../../base/files.ts'
import type { MountEntry } from '../../../host/host.ts'
import { type LoopFile, listLoopFiles } from '../../../host/loop-files.ts'
import { parseMountInfo } from '../../../host/mountinfo.ts'
import { findProbeDirectories } from '../../../host/probe.ts'
import { findOrphanedProcesses, type OrphanedProcess } from './orphaned-processes.ts'

export interface MachineState {
  readonly processes: readonly OrphanedProcess[]
  /** Mounts of volumes in the order in which they can be unmounted. */
  readonly mounts: readonly MountEntry[]
  /** Mounts that Stowage did not create, below the data directory or of its loop devices. */
  readonly foreignMounts: readonly MountEntry[]
  readonly loops: readonly LoopFile[]
  /** UIDs of the pods that have a directory or a process. */
  readonly podUids: readonly string[]
  /** Directories outside the data directory that a driver was using when it was killed. */
  readonly outerDirs: readonly string[]
}

/** `dataDir` must not contain symbolic links: the kernel reports resolved paths. */
export async function readMachineState(dataDir: string): Promise<MachineState> {
  const nodesDir = join(dataDir, 'nodes')
  const nodes = await readdir(nodesDir).catch(() => [])
  const outerDirs = (await Promise.all(nodes.map((node) => findProbeDirectories(join(nodesDir, node, 'pool'))))).flat()
  const isInside = (path: string) => [dataDir, ...outerDirs].some((dir) => path.startsWith(`${dir}/`))
  const loops = (await listLoopFiles()).filter(({ file }) => isInside(file))
  const table = parseMountInfo((await readTextIfPresent('/proc/self/mountinfo')) ?? '')
  const { mounts, foreignMounts } = selectMounts(table, { dataDir, outerDirs, loops })
  const uidsOnDisk = await listPodUids(nodesDir, nodes)
  const devices = loops.map(({ device }) => device)
  const processes = await findOrphanedProcesses({ nodesDir, podUids: new Set(uidsOnDisk), devices })
  const podUids = [...new Set([...uidsOnDisk, ...processes.flatMap(({ podUid }) => podUid ?? [])])]
  return { processes, mounts, foreignMounts, loops, podUids, outerDirs }
}

export function selectMounts(
  table: readonly MountEntry[],
  {
    dataDir,
    outerDirs,
    loops,
  }: { readonly dataDir: string; readonly outerDirs: readonly string[]; readonly loops: readonly LoopFile[] },
): Pick<MachineState, 'mounts' | 'foreignMounts'> {
  const isBelow = (dir: string, { target }: MountEntry) => target.startsWith(`${dir}/`)
  const loopNumbers = new Set(loops.map(({ deviceNumber }) => deviceNumber))
  const isOwn = (entry: MountEntry) =>
    outerDirs.some((dir) => isBelow(dir, entry)) ||
    (isBelow(dataDir, entry) && OWN_TARGET.test(entry.target.slice(dataDir.length)))
  const candidates = table.filter(
    (entry) => isOwn(entry) || isBelow(dataDir, entry) || loopNumbers.has(entry.deviceNumber),
  )
  return {
    mounts: candidates.filter(isOwn).reverse(), // a mount is listed after the one it is mounted on
    foreignMounts: candidates.filter((entry) => !isOwn(entry)),
  }
}

/** The agent mounts below its directory, and the driver in the scratch and probe directories of its pool. */
const OWN_TARGET = /^\/nodes\/[^/]+\/(agent|pool\/\.stowage(-probe-[^/]+)?)\//

async function listPodUids(nodesDir: string, nodes: readonly string[]): Promise<string[]> {
  const uids = await Promise.all(nodes.map((node) => readdir(join(nodesDir, node, 'agent', 'pods')).catch(() => [])))
  return [...new Set(uids.flat())]
}
