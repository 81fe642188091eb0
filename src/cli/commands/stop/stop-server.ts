// Stops the server of a data directory with SIGTERM and waits until its process has exited. Only the process that the
// server record identifies receives the signal.
import type { Clock } from '../../../base/clock.ts'
import { isRunning, type ProcessIdentity, signalProcess } from '../../../host/process-identity.ts'
import { findRunningServer } from '../../../processes/server/server-record.ts'
import { storeDirOf } from '../../../processes/store-location.ts'
import { isDirectoryInUse } from '../../../store/files/directory-lock.ts'

export interface StopOptions {
  readonly dataDir: string
  readonly timeoutMs: number
  readonly clock: Clock
}

export interface StoppedServer {
  /** Absent if no server was running. */
  readonly pid?: number
  readonly durationMs: number
}

const POLL_MS = 20

/** Throws if the server still runs after the timeout, or if a process that the record does not identify uses the store. */
export async function stopServer({ dataDir, timeoutMs, clock }: StopOptions): Promise<StoppedServer> {
  const server = await findServer(dataDir)
  if (!server) return { durationMs: 0 }
  const startMs = clock.monotonicMs()
  sendSignal(server, 'SIGTERM')
  if (!(await waitForExit(server, { timeoutMs, clock }))) {
    throw new Error(
      `The server on ${dataDir} (pid ${server.pid}) has not exited within ${timeoutMs / 1_000} s of SIGTERM. ` +
        'Wait longer with --timeout, or kill the process: acknowledged writes are not lost.',
    )
  }
  return { pid: server.pid, durationMs: Math.round(clock.monotonicMs() - startMs) }
}

/** Returns the running server, if there is one. Throws if a process that the record does not identify uses the store. */
export async function findServer(dataDir: string): Promise<ProcessIdentity | undefined> {
  const server = await findRunningServer(dataDir)
  if (!server) await requireUnusedStore(dataDir)
  return server
}

/** Throws if a process holds the lock of the embedded store. */
export async function requireUnusedStore(dataDir: string): Promise<void> {
  if (!(await isStoreInUse(dataDir))) return
  throw new Error(
    `A process uses ${storeDirOf(dataDir)}, but this command cannot find the process by the record in ${dataDir}: ` +
      'the process is starting, runs in another container or PID namespace, or is another version. Try again, run this command ' +
      'where the process runs, or stop the process yourself.',
  )
}

/** Returns whether a process holds the lock of the embedded store, in any PID namespace of this machine. */
export function isStoreInUse(dataDir: string): Promise<boolean> {
  return isDirectoryInUse(storeDirOf(dataDir)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false
    throw error
  })
}

/** Returns whether the process exits within the time. */
export async function waitForExit(
  identity: ProcessIdentity,
  { timeoutMs, clock }: Pick<StopOptions, 'timeoutMs' | 'clock'>,
): Promise<boolean> {
  for (const endMs = clock.monotonicMs() + timeoutMs; isRunning(identity); await clock.sleep(POLL_MS)) {
    if (clock.monotonicMs() >= endMs) return false
  }
  return true
}

export function sendSignal(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  try {
    signalProcess(identity, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    throw new Error(
      `Cannot stop process ${identity.pid}: it belongs to another user. Run the command as that user or as root.`,
    )
  }
}
