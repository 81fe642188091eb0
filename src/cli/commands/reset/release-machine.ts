// Releases what the nodes of a data directory use on this machine: ends processes, unmounts volumes, detaches loop
// devices, and removes cgroups. It reads the state again after every pass, because a program of a killed server may
// still finish a mount.
import type { Clock } from '../../../base/clock.ts'
import { type Host, openHost } from '../../../host/index.ts'
import { isRunning, signalProcess } from '../../../host/process-identity.ts'
import { removePodCgroups } from '../../../nodeagent/commands/cgroup.ts'
import { type MachineState, readMachineState } from './machine-state.ts'
import { findMountUsers } from './mount-users.ts'
import type { OrphanedProcess } from './orphaned-processes.ts'

export interface ReleaseCounts {
  readonly processes: number
  readonly mounts: number
  readonly loopDevices: number
  readonly cgroups: number
}

/** A mount or device that cannot be released within this time is an error. */
const RELEASE_MS_MAX = 60_000
/** Time for the processes of pods and drivers to exit after SIGTERM, and for the programs of a killed server to complete. */
const GRACE_MS = { pod: 2_000, tool: 10_000 }
const KILL_MS_MAX = 5_000
const POLL_MS = 20

/** Throws if something cannot be released. Deletes no data. */
export async function releaseMachine(dataDir: string, { clock }: { readonly clock: Clock }): Promise<ReleaseCounts> {
  const host = await openHost({ clock })
  const endMs = clock.monotonicMs() + RELEASE_MS_MAX
  const [pids, targets, devices, podUids] = [new Set<number>(), new Set<string>(), new Set<string>(), new Set<string>()]
  for (;;) {
    const state = await readMachineState(dataDir)
    requireNoForeignMounts(state)
    for (const uid of state.podUids) podUids.add(uid)
    for (const { pid } of state.processes) pids.add(pid)
    for (const { target } of state.mounts) targets.add(target)
    for (const { device } of state.loops) devices.add(device)
    if (state.processes.length + state.mounts.length + state.loops.length === 0) break
    await endProcesses(state.processes, clock)
    const problems = await releaseStorage(state, host)
    if (problems.length === 0) continue
    if (clock.monotonicMs() >= endMs) throw await createReleaseError(state, problems)
    await clock.sleep(POLL_MS)
  }
  const cgroups = await removeCgroups([...podUids], { clock, endMs })
  return { processes: pids.size, mounts: targets.size, loopDevices: devices.size, cgroups }
}

/** Throws if another program has mounted something in the data directory, or one of its loop devices elsewhere. */
export function requireNoForeignMounts({ foreignMounts }: Pick<MachineState, 'foreignMounts'>): void {
  const [mount] = foreignMounts
  if (!mount) return
  throw new Error(
    `${mount.source} is mounted at ${mount.target}, but Stowage has not mounted it. Unmount it first; nothing was deleted.`,
  )
}

async function endProcesses(processes: readonly OrphanedProcess[], clock: Clock): Promise<void> {
  const findRunning = (kind?: OrphanedProcess['kind']) =>
    processes.filter((process) => (kind === undefined || process.kind === kind) && isRunning(process))
  const waitWhile = async (isWaiting: () => boolean, ms: number) => {
    const endMs = clock.monotonicMs() + ms
    while (isWaiting() && clock.monotonicMs() < endMs) await clock.sleep(POLL_MS)
  }
  const findStoppable = () => [...findRunning('pod'), ...findRunning('driver')]
  for (const process of findStoppable()) signalProcess(process, 'SIGTERM')
  await waitWhile(() => findStoppable().length > 0, GRACE_MS.pod)
  await waitWhile(() => findRunning('tool').length > 0, GRACE_MS.tool)
  for (const process of findRunning()) signalProcess(process, 'SIGKILL')
  await waitWhile(() => findRunning().length > 0, KILL_MS_MAX)
}

/** Repeats the removal, because a cgroup is busy until the last of its processes is reaped. */
async function removeCgroups(
  podUids: readonly string[],
  { clock, endMs }: { readonly clock: Clock; readonly endMs: number },
): Promise<number> {
  for (;;) {
    try {
      return await removePodCgroups(podUids)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || clock.monotonicMs() >= endMs) throw error
      await clock.sleep(POLL_MS)
    }
  }
}

/** Returns why mounts and devices could not be released. */
async function releaseStorage({ mounts, loops }: MachineState, host: Host): Promise<string[]> {
  const problems: string[] = []
  const attempt = async (work: () => Promise<void>) => {
    await work().catch((error: Error) => problems.push(error.message))
  }
  // A limit would slow down the write-back of an unmount. A killed driver may have left a file system frozen.
  for (const { device } of loops) await attempt(() => host.limits.clear(device))
  const loopNumbers = new Set(loops.map(({ deviceNumber }) => deviceNumber))
  for (const { target, deviceNumber } of mounts) {
    if (loopNumbers.has(deviceNumber)) await host.filesystems.thaw(target).catch(() => {}) // the unmount reports the problem
    await attempt(() => host.mounts.unmount(target))
  }
  for (const { device, file } of loops) {
    await attempt(async () => {
      const detachment = await host.loops.detach(device, { file })
      if (detachment.is === 'pending') problems.push(detachment.message)
    })
  }
  return problems
}

async function createReleaseError({ mounts, loops }: MachineState, problems: readonly string[]): Promise<Error> {
  const paths = [...mounts.map(({ target }) => target), ...loops.map(({ device }) => device)]
  const users = await findMountUsers(paths)
  const cause =
    users.length > 0 ? ` These processes use them: ${users.join(', ')}. End them and repeat the command.` : ''
  return new Error(`Still in use: ${paths.join(', ')}. ${problems.join('; ')}.${cause} No data was deleted.`)
}
