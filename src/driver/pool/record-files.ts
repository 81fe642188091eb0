// Stores records as JSON files `<id>.json` in one directory, with a copy in memory. An invalid file is moved to the set-aside
// directory and logged.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ensureDirectory, writePrivateFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { NoSpaceError } from '../../host/index.ts'
import type { Reserve } from './disk-reserve.ts'
import type { Parse } from './records.ts'

export interface Records<R> {
  get(id: string): R | undefined
  /** Returns all records, sorted by id. */
  list(): readonly R[]
  /** Resolves when the record survives a crash of the driver and, if the files are durable, of the machine. */
  save(record: R): Promise<void>
  /** Like save, but a crash of the machine may restore the previous record. For changes that recovery can repeat. */
  saveWithoutSync(record: R): Promise<void>
  remove(id: string): Promise<void>
  /** Returns the path of an invalid record of this id that was set aside, if any. */
  findSetAside(id: string): Promise<string | undefined>
}

export interface RecordFilesOptions<R> {
  readonly directory: string
  readonly setAsideDirectory: string
  parse(value: unknown, id: string): ReturnType<Parse<R>> | Promise<ReturnType<Parse<R>>>
  /** Whether writes are synced. False for records that are invalid after a reboot. */
  readonly isDurable: boolean
  /** Released when the disk is full. */
  readonly reserve?: Reserve
  readonly log: Logger
}

export async function openRecordFiles<R extends { readonly id: string }>(
  options: RecordFilesOptions<R>,
): Promise<Records<R>> {
  const { directory, setAsideDirectory, isDurable, reserve } = options
  await ensureDirectory(directory)
  const records = await readRecords(options)
  let sortedRecords: readonly R[] | undefined
  const fileOf = (id: string) => join(directory, `${id}${EXTENSION}`)
  const saveWith = async (write: typeof replaceFile, record: R) => {
    const path = fileOf(record.id)
    const writeRecord = () => write(path, `${JSON.stringify(record)}\n`)
    try {
      await writeRecord().catch(async (error) => {
        if (!isDiskFull(error) || !reserve) throw error
        await reserve.release()
        await writeRecord()
      })
    } catch (error) {
      await rm(`${path}.tmp`, { force: true })
      throw isDiskFull(error) ? noSpaceForRecord(path) : error
    }
    records.set(record.id, record)
    sortedRecords = undefined
  }

  return {
    get: (id) => records.get(id),
    list() {
      sortedRecords ??= [...records.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
      return sortedRecords
    },
    save: (record) => saveWith(isDurable ? writePrivateFile : replaceFile, record),
    saveWithoutSync: (record) => saveWith(replaceFile, record),
    async remove(id) {
      await rm(fileOf(id), { force: true })
      if (isDurable) await syncDirectory(directory)
      records.delete(id)
      sortedRecords = undefined
      await reserve?.renew() // there may be space again
    },
    async findSetAside(id) {
      const names = await readdir(setAsideDirectory).catch(() => [])
      const name = names.find(
        (candidate) =>
          candidate.startsWith(`${basename(directory)}-${id}${EXTENSION}`) || candidate === `${id}${EXTENSION}`,
      )
      return name === undefined ? undefined : join(setAsideDirectory, name)
    },
  }
}

const EXTENSION = '.json'

const isDiskFull = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')

const noSpaceForRecord = (path: string) =>
  new NoSpaceError(
    `The record ${path} cannot be written: the disk is full. Delete volumes or snapshots, or give the disk more space.`,
  )

async function readRecords<R extends { readonly id: string }>({
  directory,
  setAsideDirectory,
  parse,
  log,
}: RecordFilesOptions<R>): Promise<Map<string, R>> {
  const records = new Map<string, R>()
  for (const file of await readdir(directory)) {
    const path = join(directory, file)
    if (file.endsWith('.tmp')) {
      await rm(path, { force: true }).catch((error: NodeJS.ErrnoException) => {
        log.error({ file: path, reason: error.message }, 'cannot remove an unfinished record')
      })
      continue
    }
    const id = file.endsWith(EXTENSION) ? file.slice(0, -EXTENSION.length) : file
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      log.error({ file: path, reason: error.message }, 'cannot read a record; it is not changed')
      return undefined
    })
    if (text === undefined) continue
    const record = await parse(parseJson(text), id)
    if (isProblem(record)) {
      const movedTo = await moveAside(path, setAsideDirectory)
      log.error(
        { file: path, movedTo, reason: record.problem },
        'a record is invalid and was set aside; the content that it describes stays in the pool unchanged',
      )
    } else records.set(record.id, record)
  }
  return records
}

/**
 * Moves a file without overwriting another. The new name includes the directory name, because a volume and its mount record have
 * the same id.
 */
export async function moveAside(path: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true })
  const existingNames = new Set(await readdir(directory))
  const name = `${basename(dirname(path))}-${basename(path)}`
  let freeName = name
  for (let copy = 2; existingNames.has(freeName); copy++) freeName = `${name}.${copy}`
  await rename(path, join(directory, freeName))
  return join(directory, freeName)
}

const isProblem = (value: object): value is { readonly problem: string } => 'problem' in value

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporaryPath = `${path}.tmp`
  const file = await open(temporaryPath, 'w', 0o600)
  try {
    await file.writeFile(text)
  } finally {
    await file.close()
  }
  await rename(temporaryPath, path)
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
