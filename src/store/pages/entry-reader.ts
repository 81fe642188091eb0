// Finds single entries of the main tree of an LMDB file with system calls. Unlike LMDB, which reads through a memory map, this
// cannot end the process if the device cannot read a page, or if a page is damaged while the file is open.
import { readSync } from 'node:fs'
import { copyOfBytes } from '../../base/unpooled-bytes.ts'
import { newestMeta } from './check-pages.ts'
import { UNREADABLE } from './check-tree.ts'
import {
  BIG_DATA_BYTES,
  type Meta,
  NODE_HAS_BIG_DATA,
  NODE_HEADER_BYTES,
  PAGE_BRANCH,
  PAGE_HEADER_BYTES,
  PAGE_LEAF,
  readNumber,
} from './page-format.ts'
import { PageReader } from './page-reader.ts'

/** Copies of branch pages are kept until the next commit, up to 4 MiB of pages of 4 KiB. */
const BRANCHES_MAX = 1_024
/** Buffers of copies that are used again: without them, each commit leaves the copies of its readers as garbage. */
const SPARE_BUFFERS_MAX = 64

interface EntryReaderOptions {
  /** An open file. */
  readonly fd: number
  /** The length of all keys. */
  readonly keyBytes: number
  /** Reads a key as a number that sorts as LMDB sorts the keys. */
  readonly readKey: (bytes: Buffer, offset: number) => number
}

/** Thrown if a page that the search needs cannot be read or is damaged. */
export class UnreadablePageError extends Error {
  override readonly name = 'UnreadablePageError'
  constructor(page: number, problem: string) {
    super(`page ${page}: ${problem}`)
  }
}

export class EntryReader {
  readonly #options: EntryReaderOptions
  readonly #reader: PageReader
  readonly #branches = new Map<number, Buffer>()
  readonly #spareBuffers: Buffer[] = []
  #meta: Meta | UnreadablePageError
  /** Whether there was a commit after `#meta` was read. */
  #isExpired = false

  constructor(options: EntryReaderOptions) {
    this.#options = options
    this.#reader = new PageReader(options.fd)
    this.#meta = this.#readMeta()
  }

  /**
   * Must be called after every commit: LMDB leaves the pages of the last commit unchanged until the next one, and reuses those of
   * earlier ones.
   */
  expire(): void {
    this.#isExpired = true
  }

  /** Must be called before a commit during which entries are read, so that they are read as they were before it. */
  refresh(): void {
    if (!this.#isExpired) return
    this.#isExpired = false
    this.#clearBranches()
    this.#meta = this.#readMeta()
  }

  /** Returns the size of the pages that the last commit counts as used, or undefined if the meta pages cannot be read. */
  usedBytes(): number | undefined {
    this.refresh()
    return this.#meta instanceof UnreadablePageError ? undefined : (this.#meta.lastPage + 1) * this.#reader.pageBytes
  }

  /** Returns a copy of the data of a key, or undefined if the tree does not have it. Throws UnreadablePageError. */
  read(key: number): Buffer | undefined {
    this.refresh()
    const meta = this.#meta
    if (meta instanceof UnreadablePageError) throw meta
    const { root, depth: leafDepth } = meta.mainTree
    if (root === undefined) return undefined
    let page = root
    for (let depth = 1; depth < leafDepth; depth++) page = this.#childOf(page, key)
    const leaf = this.#readPage(page, PAGE_LEAF)
    const { index, isEqual } = this.#search(leaf, page, key, 0)
    return isEqual ? this.#copyData(leaf, page, nodeOffset(leaf, page, index)) : undefined
  }

  #readMeta(): Meta | UnreadablePageError {
    let error: UnreadablePageError | undefined
    const meta = newestMeta(this.#reader, ({ page, problem }) => {
      error = new UnreadablePageError(page, problem)
    })
    return meta ?? error ?? new UnreadablePageError(0, UNREADABLE)
  }

  #childOf(page: number, key: number): number {
    let branch = this.#branches.get(page)
    if (!branch) {
      if (this.#branches.size >= BRANCHES_MAX) this.#clearBranches()
      const bytes = this.#readPage(page, PAGE_BRANCH)
      branch = this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(bytes.length)
      branch.set(bytes) // the next read replaces the bytes of the reader
      this.#branches.set(page, branch)
    }
    const { index } = this.#search(branch, page, key, 1) // LMDB ignores the first key of a branch
    return branch.readUIntLE(nodeOffset(branch, page, index), 6)
  }

  #clearBranches(): void {
    for (const branch of this.#branches.values())
      if (this.#spareBuffers.length < SPARE_BUFFERS_MAX) this.#spareBuffers.push(branch)
    this.#branches.clear()
  }

  /** Returns the last node from `firstIndex` on whose key is not greater, or the node before `firstIndex`. */
  #search(bytes: Buffer, page: number, key: number, firstIndex: number): { index: number; isEqual: boolean } {
    const { readKey, keyBytes } = this.#options
    let [low, high] = [firstIndex, nodeCount(bytes, page) - 1]
    while (low <= high) {
      const index = (low + high) >>> 1
      const offset = nodeOffset(bytes, page, index)
      if (offset + NODE_HEADER_BYTES + keyBytes > bytes.length)
        throw new UnreadablePageError(page, 'a node reaches beyond the page')
      const nodeKey = readKey(bytes, offset + NODE_HEADER_BYTES)
      if (nodeKey === key) return { index, isEqual: true }
      if (nodeKey < key) low = index + 1
      else high = index - 1
    }
    return { index: high, isEqual: false }
  }

  #copyData(leaf: Buffer, page: number, offset: number): Buffer {
    const length = leaf.readUInt32LE(offset)
    const isBig = leaf.readUInt16LE(offset + 4) === NODE_HAS_BIG_DATA
    const start = offset + NODE_HEADER_BYTES + this.#options.keyBytes
    if (start + (isBig ? BIG_DATA_BYTES : length) > leaf.length)
      throw new UnreadablePageError(page, 'a node reaches beyond the page')
    return isBig
      ? this.#readBigData(readNumber(leaf, start), length)
      : copyOfBytes(leaf.subarray(start, start + length))
  }

  #readBigData(firstPage: number, length: number): Buffer {
    const { lastPage } = this.#meta as Meta
    const { fd, pageBytes } = this.#reader
    if (PAGE_HEADER_BYTES + length > (lastPage + 1 - firstPage) * pageBytes)
      throw new UnreadablePageError(firstPage, 'the file ends before the end of a value')
    const bytes = Buffer.allocUnsafeSlow(length)
    const position = firstPage * pageBytes + PAGE_HEADER_BYTES
    for (let filledBytes = 0; filledBytes < length; ) {
      const remainingBytes = length - filledBytes
      const count = tryRead(firstPage, () => readSync(fd, bytes, filledBytes, remainingBytes, position + filledBytes))
      if (count === 0) throw new UnreadablePageError(firstPage, 'the file ends before the end of a value')
      filledBytes += count
    }
    return bytes
  }

  #readPage(page: number, kind: typeof PAGE_BRANCH | typeof PAGE_LEAF): Buffer {
    const bytes = tryRead(page, () => this.#reader.read(page))
    if (readNumber(bytes, 0) !== page) throw new UnreadablePageError(page, 'it has the number of another page')
    if (bytes.readUInt16LE(18) !== kind)
      throw new UnreadablePageError(page, 'it is not the kind of page that the tree has at this depth')
    return bytes
  }
}

/** Returns the number of nodes. Each has a pointer at the start of the page. */
function nodeCount(bytes: Buffer, page: number): number {
  const pointerBytes = bytes.readUInt16LE(20)
  if (PAGE_HEADER_BYTES + pointerBytes > bytes.length) throw new UnreadablePageError(page, 'its bounds are invalid')
  return pointerBytes >>> 1
}

function nodeOffset(bytes: Buffer, page: number, index: number): number {
  const offset = PAGE_HEADER_BYTES + bytes.readUInt16LE(PAGE_HEADER_BYTES + 2 * index)
  if (offset + NODE_HEADER_BYTES > bytes.length) throw new UnreadablePageError(page, 'it has an invalid pointer')
  return offset
}

function tryRead<T>(page: number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UnreadablePageError(page, `${UNREADABLE}: ${(error as Error).message}`)
  }
}
