// Checks an LMDB file before it is opened. LMDB maps the file into memory, and access to a page that is missing or that the
// device cannot read raises SIGBUS, which kills the process. So the whole file is read once. An intact file can be shorter
// than its last page number implies, because free pages at the end are not written, so in a short file every page that the
// trees refer to is checked.
import { type FileHandle, open } from 'node:fs/promises'

// The parts of the file format used here. Integers are little-endian; node pointers are relative to the header's end.
//   page   number (8), transaction (8), - (2), flags (2), end of pointers (2), - (2) | pointers to nodes (2 each) …
//   meta   a page, then: magic (4), version (4), - (16), free tree (48), main tree (48), last page (8), transaction (8)
//   tree   page size (4, free tree only), - (36), root page (8)
//   node   in a branch: child page (6), key length (2), key
//          in a leaf: data length (4), flags (2), key length (2), key, data; big data: first page (8), - (8), pages (8)
const PAGE_HEADER_BYTES = 24
const META_BYTES = PAGE_HEADER_BYTES + 136
const PAGE_IS_BRANCH = 1
const NODE_HEADER_BYTES = 8
const NODE_HAS_BIG_DATA = 1
const MAGIC = 0xbeefc0de
const VERSION = 2
const NO_PAGE = 2n ** 64n - 1n
const DEPTH_MAX = 32 // LMDB's own limit

interface Meta {
  readonly pageBytes: number
  readonly lastPage: number
  readonly transaction: bigint
  readonly roots: readonly bigint[]
}

const READ_BYTES = 2 ** 20 // per read of the whole file

/** Throws unless the file does not exist, is empty, or is an LMDB file whose pages are all there and readable. */
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
    const meta = await readNewestMeta(path, file)
    if (size >= (meta.lastPage + 1) * meta.pageBytes) return
    for (const root of meta.roots) {
      if (root !== NO_PAGE) await checkPages({ path, file, size, meta }, { page: Number(root), depth: 1 })
    }
  } finally {
    await file.close()
  }
}

async function checkReadable(path: string, file: FileHandle): Promise<void> {
  const bytes = Buffer.allocUnsafe(READ_BYTES)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(bytes, 0, READ_BYTES, position).catch((error: Error) => {
      throw unreadableError(path, position, error)
    })
    if (bytesRead === 0) return
    position += bytesRead
  }
}

async function readNewestMeta(path: string, file: FileHandle): Promise<Meta> {
  const first = await readMeta(path, file, 0)
  const second = await readMeta(path, file, first.pageBytes)
  return second.transaction > first.transaction ? second : first
}

async function readMeta(path: string, file: FileHandle, position: number): Promise<Meta> {
  const bytes = Buffer.alloc(META_BYTES)
  const { bytesRead } = await file.read(bytes, 0, META_BYTES, position)
  const meta = bytes.subarray(PAGE_HEADER_BYTES)
  const isMeta = meta.readUInt32LE(0) === MAGIC
  if (bytesRead < META_BYTES && (position > 0 || isMeta)) throw truncatedError(path)
  if (!isMeta) throw new Error(`${path} is not a Stowage store: it is not an LMDB file.`)
  if ((meta.readUInt32LE(4) & 0xffff) !== VERSION) {
    throw new Error(`${path} is an LMDB file of format ${meta.readUInt32LE(4)}; this version reads format ${VERSION}.`)
  }
  const [freeTree, mainTree] = [meta.subarray(24), meta.subarray(72)]
  return {
    pageBytes: freeTree.readUInt32LE(0),
    lastPage: Number(meta.readBigUInt64LE(120)),
    transaction: meta.readBigUInt64LE(128),
    roots: [freeTree.readBigUInt64LE(40), mainTree.readBigUInt64LE(40)],
  }
}

async function checkPages(
  context: { path: string; file: FileHandle; size: number; meta: Meta },
  { page, depth }: { page: number; depth: number },
): Promise<void> {
  const { path, file, size, meta } = context
  const requirePage = (number: number) => {
    if ((number + 1) * meta.pageBytes > size) throw truncatedError(path)
  }
  requirePage(page)
  if (depth > DEPTH_MAX) throw damagedError(path)
  const bytes = Buffer.alloc(meta.pageBytes)
  await file.read(bytes, 0, meta.pageBytes, page * meta.pageBytes)
  const references = pagesOf(path, bytes)
  for (const lastPage of references.data) requirePage(lastPage)
  for (const child of references.children) await checkPages(context, { page: child, depth: depth + 1 })
}

/** Returns the pages that a tree page refers to: its child pages and the last page of each value on overflow pages. */
function pagesOf(path: string, bytes: Buffer): { children: number[]; data: number[] } {
  const children: number[] = []
  const data: number[] = []
  try {
    const isBranch = (bytes.readUInt16LE(18) & PAGE_IS_BRANCH) !== 0
    const nodes = bytes.readUInt16LE(20) >> 1
    for (let index = 0; index < nodes; index++) {
      const node = bytes.subarray(PAGE_HEADER_BYTES + bytes.readUInt16LE(PAGE_HEADER_BYTES + 2 * index))
      if (isBranch) children.push(node.readUIntLE(0, 6))
      else if (node.readUInt16LE(4) & NODE_HAS_BIG_DATA) {
        const overflow = node.subarray(NODE_HEADER_BYTES + node.readUInt16LE(6))
        data.push(Number(overflow.readBigUInt64LE(0) + overflow.readBigUInt64LE(16)) - 1)
      }
    }
  } catch (error) {
    if (error instanceof RangeError) throw damagedError(path) // a pointer outside the page
    throw error
  }
  return { children, data }
}

const unreadableError = (path: string, position: number, cause: Error) =>
  new Error(
    `${path} cannot be read at byte ${position} or in the ${READ_BYTES} bytes after it: ${cause.message}. ` +
      'The disk may be failing: restore the store from a backup to another disk.',
    { cause },
  )

const truncatedError = (path: string) =>
  new Error(`${path} is damaged: it ends before its last page. Restore it from a backup.`)

const damagedError = (path: string) =>
  new Error(`${path} is damaged: it has an invalid page. Restore it from a backup.`)
