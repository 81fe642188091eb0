// Records as files in one directory, `<id>.json` each, kept in memory beside them: reads never touch the disk.
// A file that cannot be understood is set aside under its name, with a log line, and never guessed at.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureDirectory, writePrivateFile } from '../base/files.ts'
import type { Logger } from '../base/log.ts'
import type { Parse } from './records.ts'

export interface Records<R> {
  get(id: string): R | undefined
  /** In the order of their ids. */
  list(): readonly R[]
  /** Once it returns the record is there after a crash of the driver and, if the files are durable, of the machine. */
  save(record: R): Promise<void>
  /** As save, but a crash of the machine may bring the record before it back: for what can be concluded from that too. */
  saveLightly(record: R): Promise<void>
  remove(id: string): Promise<void>
}

export interface RecordFilesOptions<R> {
  readonly directory: string
  readonly setAsideDirectory: string
  readonly parse: Parse<R>
  /** False for what a reboot undoes anyway: then nothing waits for the disk. */
  readonly isDurable: boolean
  readonly log: Logger
}

export async function openRecordFiles<R extends { readonly id: string }>(
  options: RecordFilesOptions<R>,
): Promise<Records<R>> {
  const { directory, isDurable } = options
  await ensureDirectory(directory)
  const records = await readAll(options)
  let sorted: readonly R[] | undefined
  const fileOf = (id: string) => join(directory, `${id}${ENDING}`)
  const saveWith = async (write: typeof replaceFile, record: R) => {
    await write(fileOf(record.id), `${JSON.stringify(record)}\n`)
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
    },
  }
}

const ENDING = '.json'

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
    const record = parse(jsonOf(await readFile(path, 'utf8')), id)
    if (isProblem(record)) {
      await mkdir(setAsideDirectory, { recursive: true })
      const to = join(setAsideDirectory, file)
      await rename(path, to)
      log.error(
        { file: path, movedTo: to, because: record.problem },
        'a record cannot be understood and was set aside; what it described stays in the pool untouched',
      )
    } else records.set(record.id, record)
  }
  return records
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
