// Checks an LMDB file before it is opened. LMDB maps the file into memory and trusts its pages: access to a page that
// is missing or that the device cannot read raises SIGBUS, which kills the process, and its behaviour on a damaged page
// is undefined. So all pages in use are read once with system calls, and checked (../pages).
import { type FileHandle, open } from 'node:fs/promises'
import { checkPages } from '../pages/check-pages.ts'
import { type LeafNode, type PageProblem, UNREADABLE } from '../pages/check-tree.ts'
import { decodeMeta, META_BYTES } from '../pages/page-format.ts'
import { foreignFileError } from '../records/description.ts'
import { inspectStore } from '../records/inspect-store.ts'
import { NAME_BYTES, readSortKey } from '../records/record-codec.ts'
import type { RecordDamage } from '../records/record-inspector.ts'

export interface CheckLmdbOptions {
  /** Called for every entry on an intact page, in key order, even if the check fails later. */
  readonly onNode?: (node: LeafNode) => void
}

/**
 * Throws unless the file does not exist, is empty, or is an LMDB file whose used pages are all present, readable and
 * intact. Does not check records. Returns the last transaction of the file, or 0.
 */
export async function checkLmdbFile(path: string, { onNode }: CheckLmdbOptions = {}): Promise<number> {
  const file = await open(path, 'r').catch((error) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return 0
  try {
    const { size } = await file.stat()
    if (size === 0) return 0
    await checkIsLmdb(path, file)
    const { pageBytes, transaction, problems, problemsTotal, entries } = checkPages({
      fd: file.fd,
      keyBytes: NAME_BYTES,
      readKey: readSortKey,
      onNode(node) {
        if (node.isBig) node.readData() // its pages too must be readable
        onNode?.(node)
      },
    })
    if (entries === 0 && problems.length > 0 && problems.every(({ problem }) => problem.startsWith('a key has'))) {
      throw foreignFileError(path)
    }
    const unreadableProblem = problems.find(({ problem }) => problem.startsWith(UNREADABLE))
    if (unreadableProblem) throw unreadableError(path, unreadableProblem.page * pageBytes, unreadableProblem)
    if (problems.length > 0) throw damagedError(path, problems, problemsTotal)
    return transaction
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

async function checkIsLmdb(path: string, file: FileHandle): Promise<void> {
  const bytes = Buffer.alloc(META_BYTES)
  await file.read(bytes, 0, META_BYTES, 0).catch((error: Error) => {
    throw unreadableError(path, 0, { page: 0, problem: `${UNREADABLE}: ${error.message}` })
  })
  const { isMeta, isKnownVersion, version } = decodeMeta(bytes)
  if (!isMeta) throw new Error(`${path} is not a Stowage store: it is not an LMDB file.`)
  if (!isKnownVersion) throw new Error(`${path} is an LMDB file of format ${version}; this version cannot read it.`)
}

const unreadableError = (path: string, position: number, { page, problem }: PageProblem) =>
  new Error(
    `${path} cannot be read at byte ${position} (page ${page})${problem.slice(UNREADABLE.length)}. The disk may be failing: ` +
      'restore the store from a backup to another disk. "stowage store check" lists everything that cannot be read.',
  )

const NAMED_PROBLEMS_MAX = 3

function damagedError(path: string, problems: readonly PageProblem[], total: number): Error {
  const problemTexts = problems.slice(0, NAMED_PROBLEMS_MAX).map(({ page, problem }) => `page ${page}: ${problem}`)
  const moreText = total > problemTexts.length ? `; and ${total - problemTexts.length} more` : ''
  return new Error(
    `${path} is damaged: ${problemTexts.join('; ')}${moreText}. List all damage with "stowage store check", and repair it with ` +
      '"stowage store repair" or restore a backup.',
  )
}
