// Checks the structure of an LMDB file without mapping it: both meta pages, all pages of both trees, and the list of free
// pages. LMDB trusts the pages of its file, and a damaged one could make it read outside of its map, return wrong data, or
// overwrite pages that are in use.
import { checkFreePages } from './check-free-pages.ts'
import { checkTree, type LeafNode, type PageProblem, UNREADABLE } from './check-tree.ts'
import { decodeMeta, META_BYTES, type Meta } from './page-format.ts'
import { PageMap } from './page-map.ts'
import { PageReader } from './page-reader.ts'

const PAGE_BYTES = [4_096, 8_192, 16_384, 32_768, 65_536]
const FREE_TREE_FLAGS = 0x0008 // keys are integers
const FILE_FLAGS = 0x4000 // the file has no directory of its own
const PROBLEMS_MAX = 10_000 // further problems are counted, but not listed
const FREE_PAGES_AT_END_MAX = 2 ** 24 // pages after the end of the file, which are free and not yet written

export interface PagesCheck {
  /** An open file. */
  readonly fd: number
  /** The length of all keys in the main tree, and a function that reads one as a number that sorts as its bytes do. */
  readonly keyBytes: number
  readonly readKey: (bytes: Buffer, offset: number) => number
  /** Called for every entry of the main tree, in key order, except those on damaged pages. */
  readonly onNode?: (node: LeafNode) => void
  readonly onProgress?: (progress: { readonly pagesDone: number; readonly pagesTotal: number }) => void
}

export interface PagesReport {
  readonly pageBytes: number
  readonly pagesTotal: number
  /** The last transaction of the file. */
  readonly transaction: number
  /** The number of entries of the main tree on intact pages. */
  readonly entries: number
  /** The number of entries that the main tree has according to the meta page. */
  readonly entriesTotal: number
  readonly problems: readonly PageProblem[]
  readonly problemsTotal: number
}

export function checkPages({ fd, keyBytes, readKey, onNode, onProgress = () => {} }: PagesCheck): PagesReport {
  const reader = new PageReader(fd)
  const problems: PageProblem[] = []
  let problemsTotal = 0
  const onProblem = (problem: PageProblem) => {
    problemsTotal++
    if (problems.length < PROBLEMS_MAX) problems.push(problem)
  }
  const meta = newestMeta(reader, onProblem)
  const { pageBytes } = reader
  if (!meta) return { pageBytes, pagesTotal: 0, transaction: 0, entries: 0, entriesTotal: 0, problems, problemsTotal }

  const pagesTotal = meta.lastPage + 1
  const pages = new PageMap(pagesTotal)
  pages.markUsed(0, 2) // the meta pages
  let pagesDone = 0
  const onPage = () => {
    if (++pagesDone % 256 === 0) onProgress({ pagesDone, pagesTotal })
  }
  const check = { reader, pages, transaction: meta.transaction, onPage, onProblem }
  const entries = checkTree({ ...check, tree: meta.mainTree, keyBytes, readKey, onNode })
  checkFreePages({ ...check, tree: meta.freeTree })
  onProgress({ pagesDone: pagesTotal, pagesTotal })
  const { transaction } = meta
  return { pageBytes, pagesTotal, transaction, entries, entriesTotal: meta.mainTree.entries, problems, problemsTotal }
}

/** Returns the meta page that LMDB would use, or undefined if it cannot be determined. Sets the page size of the reader. */
export function newestMeta(reader: PageReader, onProblem: (problem: PageProblem) => void): Meta | undefined {
  const report = (page: number, problem: string) => {
    onProblem({ page, problem })
    return undefined
  }
  const firstMeta = readMeta(reader, 0)
  if (typeof firstMeta === 'string') return report(0, firstMeta)
  if (!firstMeta.isMeta || !firstMeta.isKnownVersion) return report(0, 'it is not a meta page of LMDB')
  if (!PAGE_BYTES.includes(firstMeta.pageBytes))
    return report(0, `it states a page size of ${firstMeta.pageBytes} bytes`)
  reader.pageBytes = firstMeta.pageBytes
  if (!reader.has(0, 2)) return report(1, 'the file ends before it')
  const secondMeta = readMeta(reader, firstMeta.pageBytes)
  if (typeof secondMeta === 'string') return report(1, secondMeta)
  if (!secondMeta.isMeta || !secondMeta.isKnownVersion) return report(1, 'it is not a meta page of LMDB')
  if (secondMeta.pageBytes !== firstMeta.pageBytes)
    return report(1, `it states a page size of ${secondMeta.pageBytes} bytes`)
  // Transactions write the two meta pages in turn: even ones the first page, odd ones the second. A new file and a compact
  // copy start with an empty first page.
  const { transaction: firstTransaction } = firstMeta
  const { transaction: secondTransaction } = secondMeta
  const isInitial = firstTransaction === 0 && firstMeta.lastPage === 1 && firstMeta.mainTree.root === undefined
  const isInTurn =
    firstTransaction % 2 === 0 && secondTransaction % 2 === 1 && Math.abs(firstTransaction - secondTransaction) === 1
  if (!isInTurn && !(isInitial && (secondTransaction === 0 || secondTransaction % 2 === 1))) {
    const transactions = `${firstTransaction} and ${secondTransaction}, which do not follow each other`
    return report(firstTransaction > secondTransaction ? 0 : 1, `the meta pages have the transactions ${transactions}`)
  }
  const [page, meta] = secondTransaction > firstTransaction ? ([1, secondMeta] as const) : ([0, firstMeta] as const)
  if (meta.mainTree.flags !== 0 || meta.freeTree.flags !== (FILE_FLAGS | FREE_TREE_FLAGS)) {
    return report(page, 'it has flags that Stowage does not set')
  }
  if (meta.lastPage < 1 || meta.lastPage >= reader.size / reader.pageBytes + FREE_PAGES_AT_END_MAX) {
    return report(page, `it states that the last page is ${meta.lastPage}`)
  }
  return meta
}

/** Returns the meta page at a position, or why it cannot be read. */
function readMeta(reader: PageReader, position: number): Meta | string {
  try {
    const bytes = reader.readBytes(position, META_BYTES)
    if (bytes.length === META_BYTES) return decodeMeta(bytes)
    return decodeMeta(Buffer.concat([bytes, Buffer.alloc(META_BYTES - bytes.length)])) // the file is shorter
  } catch (error) {
    return `${UNREADABLE}: ${(error as Error).message}`
  }
}
