import { expect, it } from 'vitest'
import { foldProfiles } from './flame-graph.ts'
import { allocationsOf, isOfCommit, isOfJournal, partsOf, timeOf } from './journal-share.ts'

const frame = (functionName: string) => ({ functionName, url: '', lineNumber: 0, columnNumber: 0 })
const nameOf = ({ functionName }: { functionName: string }) => functionName

const DESCRIBE = 'describeChange src/apiserver/timeline/describe-change.ts'
const VALUE = 'get value src/apiserver/timeline/journal.ts'
const WRITE = '#write src/store/revisioned-store.ts'

it('timeOf returns the time of the journal with that of the functions it calls, and that of commits without the journal', () => {
  const nodes = [
    { id: 1, callFrame: frame('(root)'), children: [2, 4, 6] },
    { id: 2, callFrame: frame(DESCRIBE), children: [3] },
    { id: 3, callFrame: frame('test'), children: [] },
    { id: 4, callFrame: frame(WRITE), children: [5] },
    { id: 5, callFrame: frame(VALUE), children: [] },
    { id: 6, callFrame: frame('other'), children: [] },
  ]
  const flame = foldProfiles([{ nodes, samples: [2, 3, 4, 5, 6], timeDeltas: [1, 2, 30, 4, 63] }], nameOf)
  expect(flame.total).toBe(100)
  expect(timeOf(flame, isOfJournal)).toBe(7)
  expect(timeOf(flame, isOfCommit, isOfJournal)).toBe(30)
})

it('allocationsOf returns the allocations of the journal and of the functions it calls', () => {
  const leaf = { callFrame: frame('concat'), selfSize: 10, children: [] }
  const journal = { callFrame: frame(DESCRIBE), selfSize: 5, children: [leaf] }
  const head = { callFrame: frame('(root)'), selfSize: 0, children: [journal, leaf] }
  expect(allocationsOf({ head }, nameOf, isOfJournal)).toEqual({ total: 25, matching: 15 })
})

it('partsOf estimates the part of garbage collection from allocations and the part of commits from bytes', () => {
  const shares = { functions: 0.02, collection: 0.1, commits: 0.2, allocations: 0.05 }
  expect(partsOf(shares, 0.1)).toEqual({
    functions: expect.closeTo(0.018),
    collection: expect.closeTo(0.005),
    commits: expect.closeTo(0.02),
  })
})
