// Appends to the log of one container run, and limits the size and number of its files: before `log` exceeds the size, it
// becomes `log.1`, the previous `log.1` becomes `log.2`, and so on. Only the agent writes these files.
import { type FileHandle, open, rename, stat } from 'node:fs/promises'
import { errorCode } from '../../../base/disk-error.ts'

export interface LogLimits {
  readonly bytesMax: number
  /** Including the file that is written to. */
  readonly filesMax: number
}

/** The kubelet's defaults. */
const LOG_BYTES_MAX = 10 * 1_048_576
const LOG_FILES_MAX = 5
export const DEFAULT_LOG_LIMITS: LogLimits = { bytesMax: LOG_BYTES_MAX, filesMax: LOG_FILES_MAX }

export interface LogWriter {
  /** Appends complete lines. Drops them if the disk is full. Calls must not overlap. */
  append(lines: Uint8Array): Promise<void>
  close(): Promise<void>
}

export async function openLogWriter(path: string, { bytesMax, filesMax }: LogLimits): Promise<LogWriter> {
  let file = await openLog(path)
  let size = (await file.stat()).size

  async function rotate(): Promise<void> {
    await file.close()
    for (let number = filesMax - 1; number > 1; number--) {
      await rename(`${path}.${number - 1}`, `${path}.${number}`).catch(ignoreMissing)
    }
    if (filesMax > 1) await rename(path, `${path}.1`)
    file = await open(path, filesMax > 1 ? 'a' : 'w', LOG_MODE)
    size = 0
  }

  return {
    async append(lines) {
      if (lines.length === 0) return
      if (size > 0 && size + lines.length > bytesMax) await rotate()
      try {
        await file.appendFile(lines)
        size += lines.length
      } catch (error) {
        size = (await file.stat()).size
        if (!DISK_FULL_CODES.includes(errorCode(error))) throw error
      }
    },
    close: () => file.close(),
  }
}

const LOG_MODE = 0o640
const DISK_FULL_CODES = ['ENOSPC', 'EDQUOT']

const openLog = (path: string): Promise<FileHandle> => open(path, 'a', LOG_MODE)

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error
}

/** Returns the paths of a log's files, from the oldest to the one that is written to. */
export async function listLogFiles(path: string): Promise<string[]> {
  const paths: string[] = []
  for (let number = 1; await exists(`${path}.${number}`); number++) paths.unshift(`${path}.${number}`)
  if (await exists(path)) paths.push(path)
  return paths
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
