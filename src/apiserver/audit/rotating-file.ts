// A log file that is rotated by size. Rotated files have the time in their name, such as
// audit-2026-11-16T14-20-36.123.log, and are deleted by count and age.
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { ensureDirectory } from '../../base/files.ts'
import type { AuditSink } from './audit-log.ts'

export interface RotatingFileOptions {
  readonly path: string
  /** The file is rotated before a write that would exceed this size, unless it is empty. 0 means no limit. */
  readonly bytesMax: number
  /** Number of rotated files to keep. 0 keeps all. */
  readonly backupsMax: number
  /** Rotated files that are older than this are deleted. 0 keeps all. */
  readonly ageMsMax: number
  readonly clock: Clock
}

const PRIVATE_MODE = 0o600
/** A write also deletes old files if they were last deleted longer ago than this. */
const CLEAN_INTERVAL_MS = 60 * 60 * 1_000

/** Opens the file, mode 0600, and appends to it. */
export async function openRotatingFile(options: RotatingFileOptions): Promise<AuditSink> {
  const { path, bytesMax, clock } = options
  await ensureDirectory(dirname(path))
  let file: FileHandle | undefined
  let bytes = 0
  let cleanedAtMs = clock.monotonicMs()

  async function openFile(): Promise<FileHandle> {
    const handle = await open(path, 'a', PRIVATE_MODE)
    await handle.chmod(PRIVATE_MODE)
    bytes = (await handle.stat()).size
    file = handle
    return handle
  }

  async function rotate(): Promise<void> {
    await file?.close()
    file = undefined
    await rename(path, rotatedPath(path, clock.nowMs()))
    await clean()
  }

  async function clean(): Promise<void> {
    cleanedAtMs = clock.monotonicMs()
    await deleteOldFiles(options)
  }

  async function write(data: Uint8Array): Promise<void> {
    // Before the data is written: a failed deletion rejects the write, and the caller then writes the data again.
    if (clock.monotonicMs() - cleanedAtMs > CLEAN_INTERVAL_MS) await clean()
    let target = file ?? (await openFile())
    if (bytesMax > 0 && bytes > 0 && bytes + data.length > bytesMax) {
      await rotate()
      target = await openFile()
    }
    try {
      await target.appendFile(data)
      bytes += data.length
    } catch (error) {
      await target.truncate(bytes) // leaves no partial line; works on a full disk too
      throw error
    }
  }

  await openFile()
  await clean()
  return { write, close: async () => file?.close() }
}

function rotatedPath(path: string, nowMs: number): string {
  const extension = extname(path)
  const time = new Date(nowMs).toISOString().slice(0, 23).replaceAll(':', '-')
  return join(dirname(path), `${basename(path, extension)}-${time}${extension}`)
}

async function deleteOldFiles({ path, backupsMax, ageMsMax, clock }: RotatingFileOptions): Promise<void> {
  const extension = extname(path)
  const prefix = `${basename(path, extension)}-`
  const names = await readdir(dirname(path))
  const rotatedFiles = names
    .map((name) => ({
      name,
      atMs: name.startsWith(prefix) ? timeOfName(name.slice(prefix.length), extension) : undefined,
    }))
    .filter((file): file is { name: string; atMs: number } => file.atMs !== undefined)
    .sort((a, b) => b.atMs - a.atMs)
  for (const [index, { name, atMs }] of rotatedFiles.entries()) {
    const isOld = ageMsMax > 0 && clock.nowMs() - atMs > ageMsMax
    if (isOld || (backupsMax > 0 && index >= backupsMax)) await rm(join(dirname(path), name), { force: true })
  }
}

/** Returns the time in the name of a rotated file, or undefined for any other file. */
function timeOfName(name: string, extension: string): number | undefined {
  const [, date, hour, minute, second] =
    /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})/.exec(name.endsWith(extension) ? name : '') ?? []
  return date ? Date.parse(`${date}T${hour}:${minute}:${second}Z`) : undefined
}
