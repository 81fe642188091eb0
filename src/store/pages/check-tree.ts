// Walks a tree of an LMDB file, or a range of its keys, page by page, checks the bounds, pointers and counts that LMDB relies
// on, and passes the nodes of intact leaf pages to `onNode`. A page that is damaged or cannot be read is reported and skipped with all
// pages below it.
import {
  BIG_DATA_BYTES,
  NODE_HAS_BIG_DATA,
  NODE_HEADER_BYTES,
  PAGE_BRANCH,
  PAGE_HEADER_BYTES,
  PAGE_LEAF,
  PAGE_OVERFLOW,
  readNumber,
  type TreeMeta,
} from './page-format.ts'
import type { PageMap } from './page-map.ts'
import type { PageReader } from './page-reader.ts'

const DEPTH_MAX = 32 // LMDB's own limit

/** The start of the problem of a page that the device cannot read. */
export const UNREADABLE = 'it cannot be read'

export interface PageProblem {
  readonly page: number
  readonly problem: string
  /** The keys that a skipped page may have: at least `lower`, below `upper`. Absent if no keys were skipped. */
  readonly keys?: { readonly lower: number; readonly upper: number }
}

/** A key with its data. */
export interface LeafNode {
  readonly page: number
  /** Whether the data has separate pages, which are read only by `readData`. */
  readonly isBig: boolean
  /** The result of `readKey`. */
  readonly key: number
  /**
   * Reads the data. May be called only before the callback returns. Returns undefined, and reports the page, if the device
   * cannot read it.
   */
  readonly readData: () => Buffer | undefined
}

export interface TreeCheck {
  readonly reader: PageReader
  readonly pages: PageMap
  readonly tree: TreeMeta
  /** The newest transaction. No page can be newer. */
  readonly transaction: number
  /** Reads a key as a number that sorts as LMDB sorts the keys. */
  readonly readKey: (bytes: Buffer, offset: number) => number
  /** The length of all keys. */
  readonly keyBytes: number
  readonly onNode: ((node: LeafNode) => void) | undefined
  readonly onPage: () => void
  readonly onProblem: (problem: PageProblem) => void
}

/** A walk over a range of the keys. */
export interface RangeCheck extends TreeCheck {
  /** The first key of the range. Pages below it are not read. */
  readonly firstKey: number
  /** Returns whether the walk ends before the next node or page. */
  readonly isEnd: () => boolean
}

interface Counts {
  branchPages: number
  leafPages: number
  overflowPages: number
  entries: number
  hasProblem: boolean
}

/**
 * Checks all pages of a tree, and then its counts, which show whether a part is missing. Returns the number of entries on
 * intact pages.
 */
export function checkTree(check: TreeCheck): number {
  const { tree, onProblem } = check
  const counts = newCounts()
  const countingCheck = {
    ...check,
    firstKey: Number.NEGATIVE_INFINITY,
    isEnd: () => false,
    onProblem(problem: PageProblem) {
      counts.hasProblem = true
      onProblem(problem)
    },
  }
  if (tree.root === undefined) {
    if (tree.entries > 0 || tree.depth > 0) onProblem({ page: 0, problem: 'a tree has entries but no root page' })
    return 0
  }
  checkPage(countingCheck, counts, rootOf(tree.root))
  if (counts.hasProblem) return counts.entries // the counts cannot match
  for (const count of ['branchPages', 'leafPages', 'overflowPages', 'entries'] as const) {
    if (counts[count] !== tree[count]) {
      const difference = `${counts[count]} ${count}, but the meta page states ${tree[count]}`
      onProblem({ page: tree.root, problem: `the tree has ${difference}` })
    }
  }
  return counts.entries
}

/** Walks the nodes of a range of keys in key order. Checks the pages on the way, but no counts. */
export function checkRange(check: RangeCheck): void {
  if (check.tree.root !== undefined) checkPage(check, newCounts(), rootOf(check.tree.root))
}

const newCounts = (): Counts => ({ branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0, hasProblem: false })

const rootOf = (page: number): Subtree => ({
  page,
  depth: 1,
  lower: Number.NEGATIVE_INFINITY,
  upper: Number.POSITIVE_INFINITY,
})

interface Subtree {
  readonly page: number
  readonly depth: number
  /** Bounds of the keys: at least `lower`, below `upper`. */
  readonly lower: number
  readonly upper: number
}

function checkPage(check: RangeCheck, counts: Counts, subtree: Subtree): undefined {
  const { reader, pages, tree, transaction } = check
  const { page, depth } = subtree
  const report = reporterOf(check, subtree)
  if (depth > DEPTH_MAX || depth > tree.depth) return report('the tree is deeper than the meta page states')
  if (!pages.markUsed(page, 1)) return report('a tree refers to it, but it is outside of the file or in use elsewhere')
  if (!reader.has(page)) return report('the file ends before it')
  check.onPage()
  const bytes = tryRead(() => reader.read(page))
  if (typeof bytes === 'string') return report(bytes)
  const flags = bytes.readUInt16LE(18)
  if (readNumber(bytes, 0) !== page) return report('it has the number of another page')
  if (readNumber(bytes, 8) > transaction) return report('it belongs to a transaction that does not exist')
  if (flags !== (depth === tree.depth ? PAGE_LEAF : PAGE_BRANCH))
    return report('it is not the kind of page that the tree has at this depth')
  const nodes = nodeOffsets(bytes)
  if (typeof nodes === 'string') return report(nodes)
  if (flags === PAGE_LEAF) {
    counts.leafPages++
    checkLeaf(check, counts, { ...subtree, bytes, nodes })
  } else {
    counts.branchPages++
    checkBranch(check, counts, { ...subtree, bytes: Buffer.from(bytes), nodes }) // reading the children overwrites the block
  }
}

interface LoadedPage extends Subtree {
  readonly bytes: Buffer
  readonly nodes: readonly number[]
}

function checkBranch(check: RangeCheck, counts: Counts, branch: LoadedPage): undefined {
  const { depth, lower, upper, bytes, nodes } = branch
  const { keyBytes, readKey } = check
  const report = reporterOf(check, branch)
  if (nodes.length < 2) return report('a branch has fewer than two children')
  const children: { child: number; key: number }[] = []
  let nodeBytes = 0
  for (const [index, offset] of nodes.entries()) {
    const length = bytes.readUInt16LE(offset + 6)
    if (offset + NODE_HEADER_BYTES + length > bytes.length) return report('a node reaches beyond the page')
    nodeBytes += evenSize(NODE_HEADER_BYTES + length)
    if (index > 0 && length !== keyBytes) return report(`a key has ${length} bytes`)
    const key = index === 0 ? lower : readKey(bytes, offset + NODE_HEADER_BYTES) // LMDB ignores the first key
    if (index > 0 && key <= (children[index - 1]?.key ?? lower)) return report('its keys are not in order')
    if (key >= upper) return report('it has keys of another page')
    children.push({ child: bytes.readUIntLE(offset, 6), key })
  }
  if (nodeBytes !== usedBytes(bytes)) return report('the size of its nodes differs from the used space that it states')
  for (const [index, { child, key }] of children.entries()) {
    const childUpper = children[index + 1]?.key ?? upper
    if (childUpper <= check.firstKey) continue
    if (check.isEnd()) return
    checkPage(check, counts, { page: child, depth: depth + 1, lower: key, upper: childUpper })
  }
}

interface BigData {
  readonly firstPage: number
  readonly pageCount: number
  readonly length: number
}

function checkLeaf(check: RangeCheck, counts: Counts, leaf: LoadedPage): undefined {
  const { page, lower, upper, bytes, nodes } = leaf
  const { reader, pages, keyBytes, readKey, onNode, onProblem } = check
  const report = reporterOf(check, leaf)
  if (nodes.length === 0) return report('a leaf has no entries')
  const bigData = new Map<number, BigData>()
  let previousKey = lower
  let nodeBytes = 0
  for (const offset of nodes) {
    const length = bytes.readUInt32LE(offset)
    const flags = bytes.readUInt16LE(offset + 4)
    const keyLength = bytes.readUInt16LE(offset + 6)
    if (keyLength !== keyBytes) return report(`a key has ${keyLength} bytes`)
    if (flags !== 0 && flags !== NODE_HAS_BIG_DATA) return report(`a node has the flags ${flags}`)
    const start = offset + NODE_HEADER_BYTES + keyLength
    const end = start + (flags === 0 ? length : BIG_DATA_BYTES)
    if (end > bytes.length) return report('a node reaches beyond the page')
    nodeBytes += evenSize(end - offset)
    const key = readKey(bytes, offset + NODE_HEADER_BYTES)
    if (offset === nodes[0] ? key < lower : key <= previousKey) return report('its keys are not in order')
    previousKey = key
    if (flags === NODE_HAS_BIG_DATA) {
      const [firstPage, pageCount] = [readNumber(bytes, start), readNumber(bytes, start + 16)]
      bigData.set(offset, { firstPage, pageCount, length })
    }
  }
  if (previousKey >= upper) return report('it has keys of another page')
  if (nodeBytes !== usedBytes(bytes)) return report('the size of its nodes differs from the used space that it states')

  counts.entries += nodes.length
  for (const offset of nodes) {
    const nodeBigData = bigData.get(offset)
    const key = readKey(bytes, offset + NODE_HEADER_BYTES)
    if (key < check.firstKey) continue
    if (check.isEnd()) return
    if (nodeBigData) {
      const problem = bigDataProblem(check, nodeBigData)
      if (problem) {
        onProblem({ page: nodeBigData.firstPage, problem, keys: { lower: key, upper: key + 1 } })
        continue
      }
      counts.overflowPages += nodeBigData.pageCount
    }
    if (!onNode) continue
    const keyEnd = offset + NODE_HEADER_BYTES + keyBytes
    const readData = () =>
      nodeBigData ? readBigData(nodeBigData) : bytes.subarray(keyEnd, keyEnd + bytes.readUInt32LE(offset))
    onNode({ page, isBig: nodeBigData !== undefined, key, readData })
  }

  function readBigData({ firstPage, length }: BigData): Buffer | undefined {
    const data = tryRead(() => reader.readBytes(firstPage * reader.pageBytes + PAGE_HEADER_BYTES, length))
    if (typeof data !== 'string') return data
    onProblem({ page: firstPage, problem: data })
    return undefined
  }

  function bigDataProblem({ transaction }: TreeCheck, { firstPage, pageCount, length }: BigData): string | undefined {
    if (pageCount !== Math.ceil((PAGE_HEADER_BYTES + length) / reader.pageBytes))
      return 'a value has another size than its pages'
    if (!pages.markUsed(firstPage, pageCount))
      return `page ${page} refers to it, but it is outside of the file or in use elsewhere`
    if (!reader.has(firstPage, pageCount)) return 'the file ends before the end of a value'
    check.onPage()
    const header = tryRead(() => reader.readBytes(firstPage * reader.pageBytes, PAGE_HEADER_BYTES))
    if (typeof header === 'string') return header
    if (readNumber(header, 0) !== firstPage) return 'it has the number of another page'
    if (readNumber(header, 8) > transaction) return 'it belongs to a transaction that does not exist'
    if (header.readUInt16LE(18) !== PAGE_OVERFLOW) return 'it is not the page of a value'
    if (header.readUInt32LE(20) !== pageCount) return 'it has another number of pages than its node states'
    return undefined
  }
}

const reporterOf =
  ({ onProblem }: TreeCheck, { page, lower, upper }: Subtree) =>
  (problem: string): undefined =>
    void onProblem({ page, problem, keys: { lower, upper } })

/** Returns the bytes, or why they cannot be read. */
function tryRead(readBytes: () => Buffer): Buffer | string {
  try {
    return readBytes()
  } catch (error) {
    return `${UNREADABLE}: ${(error as Error).message}`
  }
}

/** Returns the offsets of the nodes in the page, or a description of the problem. */
function nodeOffsets(bytes: Buffer): number[] | string {
  const lower = bytes.readUInt16LE(20)
  const upper = bytes.readUInt16LE(22)
  const space = bytes.length - PAGE_HEADER_BYTES
  if (lower % 2 !== 0 || lower > upper || upper > space) return 'its bounds are invalid'
  const offsets: number[] = []
  for (let pointer = PAGE_HEADER_BYTES; pointer < PAGE_HEADER_BYTES + lower; pointer += 2) {
    const offset = bytes.readUInt16LE(pointer)
    if (offset < upper || offset % 2 !== 0 || offset + NODE_HEADER_BYTES > space) return 'it has an invalid pointer'
    offsets.push(PAGE_HEADER_BYTES + offset)
  }
  return offsets
}

const usedBytes = (bytes: Buffer): number => bytes.length - PAGE_HEADER_BYTES - bytes.readUInt16LE(22)
const evenSize = (size: number): number => size + (size % 2)
