// Records as files in one directory, `<id>.json` each, kept in memory beside them: reads never touch the disk.
// A file that cannot be understood is set aside under its name, with a log line, and never guessed at.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ensureDirectory, writePrivateFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { NoSpaceError } from '../../host/index.ts'
import type { Parse } from './records.ts'
import type { Reserve } from './reserve.ts'

export interface Records<R> {
  get(id: string): R | undefined
  /** In the order of their ids. */
  list(): readonly R[]
  /** Once it returns the record is there after a crash of the driver and, if the files are durable, of the machine. */
  save(record: R): Promise<void>
  /** As save, but a crash of the machine may bring the record before it back: for what can be concluded from that too. */
  saveLightly(record: R): Promise<void>
  remove(id: string): Promise<void>
  /** Where a record of this id was moved that could not be understood. */
  setAside(id: string): Promise<string | undefined>
}

export interface RecordFilesOptions<R> {
  readonly directory: string
  readonly setAsideDirectory: string
  readonly parse: Parse<R>
  /** False for what a reboot undoes anyway: then nothing waits for the disk. */
  readonly isDurable: boolean
  /** Given up when the disk is full. */
  readonly reserve?: Reserve
  readonly log: Logger
}

export async function openRecordFiles<R extends { readonly id: string }>(
  options: RecordFilesOptions<R>,
): Promise<Records<R>> {
  const { directory, setAsideDirectory, isDurable, reserve } = options
  await ensureDirectory(directory)
  const records = await readAll(options)
  let sorted: readonly R[] | undefined
  const fileOf = (id: string) => join(directory, `${id}${ENDING}`)
  const saveWith = async (write: typeof replaceFile, record: R) => {
    const path = fileOf(record.id)
    const writeIt = () => write(path, `${JSON.stringify(record)}\n`)
    try {
      await writeIt().catch(async (error) => {
        if (!isFull(error) || !reserve) throw error
        await reserve.release()
        await writeIt()
      })
    } catch (error) {
      await rm(`${path}.tmp`, { force: true })
      throw isFull(error) ? noRoomForRecord(path) : error
    }
    records.set(record.id, record)
    sorted = undefined
  }

  return {
    get: (id) => records.get(id),
    list() {
      sorted ??= [...records.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
      return sorted
    },
    save: (record) => saveWith(isDurable ? writePrivateFile : replaceFile, record),
    saveLightly: (record) => saveWith(replaceFile, record),
    async remove(id) {
      await rm(fileOf(id), { force: true })
      if (isDurable) await syncDirectory(directory)
      records.delete(id)
      sorted = undefined
      await reserve?.renew() // what the record was of is gone too, and has made room
    },
    async setAside(id) {
      const names = await readdir(setAsideDirectory).catch(() => [])
      const name = names.find(
        (each) => each.startsWith(`${basename(directory)}-${id}${ENDING}`) || each === `${id}${ENDING}`,
      )
      return name === undefined ? undefined : join(setAsideDirectory, name)
    },
  }
}

const ENDING = '.json'

const isFull = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')

const noRoomForRecord = (path: string) =>
  new NoSpaceError(
    `The record ${path} cannot be written: the disk is full. Delete volumes or snapshots, or give the disk more space.`,
  )

async function readAll<R extends { readonly id: string }>({
  directory,
  setAsideDirectory,
  parse,
  log,
}: RecordFilesOptions<R>): Promise<Map<string, R>> {
  const records = new Map<string, R>()
  for (const file of await readdir(directory)) {
    const path = join(directory, file)
    if (file.endsWith('.tmp')) {
      await rm(path, { force: true }) // never took its name: what it was to say did not happen
      continue
    }
    const id = file.endsWith(ENDING) ? file.slice(0, -ENDING.length) : file
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      log.error({ file: path, because: error.message }, 'a record cannot be read; it is left where it is')
      return undefined
    })
    if (text === undefined) continue
    const record = parse(jsonOf(text), id)
    if (isProblem(record)) {
      const to = await moveAside(path, setAsideDirectory)
      log.error(
        { file: path, movedTo: to, because: record.problem },
        'a record cannot be understood and was set aside; what it described stays in the pool untouched',
      )
    } else records.set(record.id, record)
  }
  return records
}

/** Named after the directory it was in, since a volume and its presence have one name; and never over an older one. */
export async function moveAside(path: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true })
  const taken = new Set(await readdir(directory))
  const name = `${basename(dirname(path))}-${basename(path)}`
  let free = name
  for (let copy = 2; taken.has(free); copy++) free = `${name}.${copy}`
  await rename(path, join(directory, free))
  return join(directory, free)
}

const isProblem = (value: object): value is { readonly problem: string } => 'problem' in value

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  const file = await open(temporary, 'w', 0o600)
  try {
    await file.writeFile(text)
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
