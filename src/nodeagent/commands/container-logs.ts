// Limits the size and number of log files of a container: when `log` exceeds the size, its content becomes `log.1`, and the
// older files move on to `log.2` and so on. The process writes to `log` itself and may outlive the agent,
// so the file is copied and truncated, not renamed. Output that the process writes between the two steps is lost.
import { type FileHandle, open, rename, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/disk-error.ts'
import type { Logger } from '../../base/log.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import { runFiles } from './run-records.ts'

export interface LogLimits {
  readonly bytesMax: number
  /** Including the file that is written to. */
  readonly filesMax: number
}

/** The defaults of the kubelet. */
const LOG_BYTES_MAX = 10 * 1_048_576
const LOG_FILES_MAX = 5
export const DEFAULT_LOG_LIMITS: LogLimits = { bytesMax: LOG_BYTES_MAX, filesMax: LOG_FILES_MAX }

/** The interval of the kubelet. A command can exceed the size by what it writes in this time. */
export const LOG_CHECK_MS = 10_000

const COPY_CHUNK_BYTES = 262_144

export interface LogRotationDeps {
  readonly paths: AgentPaths
  readonly disk: NodeDisk
  readonly clock: Clock
  readonly log: Logger
  readonly limits: LogLimits
}

/** Rotates the logs of all containers of the node periodically, until the signal is aborted. */
export async function runLogRotation({ paths, disk, clock, log, limits }: LogRotationDeps, signal: AbortSignal) {
  while (!signal.aborted) {
    await rotateLogs({ paths, disk, limits }, (path, error) =>
      log.warn({ path, reason: error.message }, 'cannot rotate the log of a container; retrying'),
    )
    await clock.sleep(LOG_CHECK_MS, signal).catch(() => {}) // rejects when the signal is aborted
  }
}

async function rotateLogs(
  { paths, disk, limits }: Pick<LogRotationDeps, 'paths' | 'disk' | 'limits'>,
  onError: (path: string, error: Error) => void,
): Promise<void> {
  const containers = await listContainers(paths, disk).catch((error: Error) => {
    onError(paths.pods, error)
    return []
  })
  for (const container of containers) {
    for (const run of await disk.list(container).catch(() => [])) {
      const { log } = runFiles(join(container, run))
      await rotateLog(log, limits).catch((error: Error) => onError(log, error))
    }
  }
}

async function listContainers(paths: AgentPaths, disk: NodeDisk): Promise<string[]> {
  const containers: string[] = []
  for (const uid of await disk.list(paths.pods)) {
    for (const name of await disk.list(paths.containers(uid))) containers.push(paths.container(uid, name))
  }
  return containers
}

/** Rotates a log that exceeds `bytesMax`. Keeps its end, or nothing if the disk is full. */
export async function rotateLog(path: string, { bytesMax, filesMax }: LogLimits): Promise<void> {
  const size = await stat(path).then(({ size }) => size, zeroIfMissing)
  if (size <= bytesMax) return
  const copy = `${path}.copy`
  try {
    await copyEnd(path, copy, bytesMax)
    for (let number = filesMax - 1; number > 1; number--) {
      await rename(`${path}.${number - 1}`, `${path}.${number}`).catch(zeroIfMissing)
    }
    await rename(copy, `${path}.1`)
  } catch (error) {
    await rm(copy, { force: true })
    if (!['ENOSPC', 'EDQUOT'].includes(errorCode(error))) throw error
  }
  await truncate(path)
}

/** Copies the last `bytesMax` bytes of a file, and at most as many bytes that are appended meanwhile. */
async function copyEnd(sourcePath: string, targetPath: string, bytesMax: number): Promise<void> {
  const source = await open(sourcePath, 'r')
  try {
    const target = await open(targetPath, 'w', 0o640)
    try {
      const { size } = await source.stat()
      await copyRange(source, target, { start: Math.max(0, size - bytesMax), end: size + bytesMax })
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function copyRange(source: FileHandle, target: FileHandle, { start, end }: { start: number; end: number }) {
  const buffer = Buffer.alloc(COPY_CHUNK_BYTES)
  for (let position = start; position < end; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, end - position), position)
    if (bytesRead === 0) return
    await target.write(buffer, 0, bytesRead)
    position += bytesRead
  }
}

function zeroIfMissing(error: unknown): number {
  if (errorCode(error) === 'ENOENT') return 0
  throw error
}
