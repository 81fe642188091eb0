// Checks an LMDB file before it is opened. LMDB maps the file into memory and trusts its pages: access to a page that is
// missing or that the device cannot read raises SIGBUS, which kills the process, and a damaged page could do anything. So the
// whole file is read once, and the pages are checked (../pages).
import { type FileHandle, open } from 'node:fs/promises'
import { checkPages } from '../pages/check-pages.ts'
import type { PageProblem } from '../pages/check-tree.ts'
import { decodeMeta, META_BYTES } from '../pages/page-format.ts'
import { foreignFileError } from '../records/description.ts'
import { inspectStore } from '../records/inspect-store.ts'
import { NAME_BYTES, readSortedName } from '../records/record-codec.ts'
import type { RecordDamage } from '../records/record-inspector.ts'

const READ_BYTES = 2 ** 20 // per read of the whole file
const PAGE_BYTES = 4_096 // the unit in which an error is located

/**
 * Throws unless the file does not exist, is empty, or is an LMDB file whose used pages are all there, readable and intact.
 * Does not check records.
 */
export async function checkLmdbFile(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return
  try {
    const { size } = await file.stat()
    if (size === 0) return
    await checkReadable(path, file)
    await checkIsLmdb(path, file)
    const { problems, problemsTotal, entries } = checkPages({
      fd: file.fd,
      keyBytes: NAME_BYTES,
      readKey: readSortedName,
    })
    if (entries === 0 && problems.length > 0 && problems.every(({ problem }) => problem.startsWith('a key has'))) {
      throw foreignFileError(path)
    }
    if (problems.length > 0) throw damagedError(path, problems, problemsTotal)
  } finally {
    await file.close()
  }
}

/** Checks a complete copy of a store. Throws if it has a damaged page. Returns the damaged records. */
export async function checkLmdbCopy(path: string): Promise<readonly RecordDamage[]> {
  const { damagedPages, damagedRecords } = inspectStore({ path })
  if (damagedPages.length > 0) await checkLmdbFile(path)
  return damagedRecords
}

async function checkReadable(path: string, file: FileHandle): Promise<void> {
  const bytes = Buffer.allocUnsafe(READ_BYTES)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(bytes, 0, READ_BYTES, position).catch(async (error: Error) => {
      throw unreadableError(path, await findUnreadable(file, position), error)
    })
    if (bytesRead === 0) return
    position += bytesRead
  }
}

/** Returns the position of the first page after `start` that cannot be read. */
async function findUnreadable(file: FileHandle, start: number): Promise<number> {
  const bytes = Buffer.allocUnsafe(PAGE_BYTES)
  for (let position = start; position < start + READ_BYTES; position += PAGE_BYTES) {
    const isReadable = await file.read(bytes, 0, PAGE_BYTES, position).then(
      () => true,
      () => false,
    )
    if (!isReadable) return position
  }
  return start // a later attempt succeeded
}

async function checkIsLmdb(path: string, file: FileHandle): Promise<void> {
  const bytes = Buffer.alloc(META_BYTES)
  await file.read(bytes, 0, META_BYTES, 0)
  const { isMeta, isKnownVersion, version } = decodeMeta(bytes)
  if (!isMeta) throw new Error(`${path} is not a Stowage store: it is not an LMDB file.`)
  if (!isKnownVersion) throw new Error(`${path} is an LMDB file of format ${version}; this version cannot read it.`)
}

const unreadableError = (path: string, position: number, cause: Error) =>
  new Error(
    `${path} cannot be read at byte ${position} (page ${position / PAGE_BYTES}): ${cause.message}. The disk may be failing: ` +
      'restore the store from a backup to another disk. "stowage store check" lists all that cannot be read.',
    { cause },
  )

const NAMED_PROBLEMS_MAX = 3

function damagedError(path: string, problems: readonly PageProblem[], total: number): Error {
  const named = problems.slice(0, NAMED_PROBLEMS_MAX).map(({ page, problem }) => `page ${page}: ${problem}`)
  const rest = total > named.length ? `; and ${total - named.length} more` : ''
  return new Error(
    `${path} is damaged: ${named.join('; ')}${rest}. List all damage with "stowage store check", and repair it with ` +
      '"stowage store repair" or restore a backup.',
  )
}
