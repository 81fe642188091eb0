// Ends the driver processes that a killed server left running. The record has the PID of the driver and its start time, because
// the kernel reuses PIDs. The other processes of the driver are found by an environment variable.
import { readdir, readFile, rm } from 'node:fs/promises'
import type { Clock } from '../../../base/clock.ts'
import { errorCode } from '../../../base/disk-error.ts'
import { readTextIfPresent } from '../../../base/files.ts'
import type { Logger } from '../../../base/log.ts'
import { identifyProcess, isRunning, type ProcessIdentity, signalProcess } from '../../../host/process-identity.ts'

/** Environment variable of driver processes: the socket's resolved path, which is unique on the machine. */
export const SOCKET_VARIABLE = 'STOWAGE_DRIVER_SOCKET'

export interface OrphanedProcessOptions {
  readonly recordFile: string
  /** The socket's resolved path. */
  readonly mark: string
  readonly clock: Clock
  readonly log: Logger
}

/** Time to wait after SIGTERM and after SIGKILL. A process that still runs afterwards is logged. */
const END_MS_MAX = 3_000
const POLL_MS = 20

/** Ends the processes of an earlier run, if there are any. */
export async function endOrphanedProcess({ recordFile, mark, clock, log }: OrphanedProcessOptions): Promise<void> {
  const text = await readTextIfPresent(recordFile)
  if (text === undefined) return
  const record = parseRecord(text)
  const findRunning = async () => {
    const members = await findMembers(mark)
    const isListed = members.some(({ pid }) => pid === record?.pid)
    return record && !isListed && isRunning(record) ? [record, ...members] : members
  }
  let running = await findRunning()
  if (running.length > 0)
    log.warn(
      { pids: running.map(({ pid }) => pid), socket: mark },
      'ending the driver process that a killed server left running',
    )
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const identity of running) signalIfPermitted(identity, signal)
    const deadlineMs = clock.monotonicMs() + END_MS_MAX
    while (running.some(isRunning) && clock.monotonicMs() < deadlineMs) await clock.sleep(POLL_MS)
    running = await findRunning()
  }
  if (running.length > 0)
    log.error(
      { pids: running.map(({ pid }) => pid), socket: mark },
      'cannot end the driver process that a killed server left running: the process does not react to SIGKILL, or runs as another user. ' +
        `End it with: sudo kill -KILL ${running.map(({ pid }) => pid).join(' ')}`,
    )
  await rm(recordFile, { force: true })
}

/** Ignores EPERM: a process of another user, such as one started by sudo(8), is reported at the end. */
function signalIfPermitted(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  try {
    signalProcess(identity, signal)
  } catch (error) {
    if (errorCode(error) !== 'EPERM') throw error
  }
}

/** Returns the processes that have the variable with this value. */
async function findMembers(mark: string): Promise<ProcessIdentity[]> {
  const members: ProcessIdentity[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const identity = await identifyProcess(Number(name)) // read before the environment: a reused PID would have another start time
    const environment = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '')
    if (environment.split('\0').includes(`${SOCKET_VARIABLE}=${mark}`) && isRunning(identity)) members.push(identity)
  }
  return members
}

/** Returns undefined if the record was written before the process started, or is damaged. */
function parseRecord(text: string): ProcessIdentity | undefined {
  try {
    const { pid, startTicks, bootId } = JSON.parse(text) as Partial<ProcessIdentity>
    const isValid =
      Number.isSafeInteger(pid) && pid! > 1 && typeof startTicks === 'string' && typeof bootId === 'string'
    return isValid ? { pid: pid!, startTicks: startTicks!, bootId: bootId! } : undefined
  } catch {
    return undefined // the server was killed while it wrote the record
  }
}
