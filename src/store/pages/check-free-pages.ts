// Checks the tree of free pages of an LMDB file: LMDB overwrites the pages that it lists, so a page that is both listed and
// in use would be lost with the next write. Each entry is the list of pages that a transaction freed: its length (8), then
// page numbers (8 each). A negative number -N means that the next one starts a run of N pages; zeros are unused.
import { checkTree, type LeafNode, type TreeCheck } from './check-tree.ts'
import { readNumber } from './page-format.ts'
import type { PageMap } from './page-map.ts'

export type FreePagesCheck = Omit<TreeCheck, 'readKey' | 'keyBytes' | 'onNode'>

/** Must be called after the check of the main tree, which marks the pages in use. */
export function checkFreePages(check: FreePagesCheck): void {
  const lists: { page: number; list: Buffer }[] = []
  checkTree({
    ...check,
    onProblem: ({ page, problem }) => check.onProblem({ page, problem }), // without keys, which are not names of records
    keyBytes: 8,
    readKey: readNumber,
    onNode: ({ page, readData }: LeafNode) => {
      const list = readData()
      if (list) lists.push({ page, list: Buffer.from(list) })
    },
  })
  for (const { page, list } of lists) {
    const problem = claimFreePages(list, check.pages)
    if (problem) check.onProblem({ page, problem: `its list of free pages is damaged: ${problem}` })
  }
}

function claimFreePages(list: Buffer, pages: PageMap): string | undefined {
  if (list.length < 8 || list.length % 8 !== 0) return `it has ${list.length} bytes`
  const length = list.readBigUInt64LE(0)
  if (length > BigInt(list.length / 8 - 1)) return `it states a length of ${length} entries`
  let runLength = 1
  for (let index = 1; index <= Number(length); index++) {
    const entry = Number(list.readBigInt64LE(index * 8))
    if (entry === 0) continue
    if (entry < 0) {
      runLength = -entry
      continue
    }
    if (!pages.markUsed(entry, runLength)) {
      return `it contains ${runLength === 1 ? `page ${entry}, which is` : `${runLength} pages from ${entry} on, which are`} outside of the file or in use`
    }
    runLength = 1
  }
  return undefined
}
