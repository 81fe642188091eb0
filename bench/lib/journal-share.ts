// Finds the share of the journal of volumes in profiles of a server: the time and the allocations of its functions and of those
// that they call, and its parts of garbage collection and of writing commits.
import type { CallFrame, Flame } from './flame-graph.ts'

/** Files whose functions run only for the journal. */
const JOURNAL_FILES = /\bsrc\/(apiserver\/timeline\/|runtime\/operations\/activity-of\.ts)/
/** Functions of other files that run only for the journal. */
const JOURNAL_FUNCTIONS = /^(recordAttempt|recordCall) .*src\/runtime\/operations\/registry\.ts/
/** Functions that write the group commits, to each of which the journal adds a chunk. */
const COMMIT_FUNCTIONS = /^(#write|#apply|#compact|write) .*src\/store\/(revisioned-store|lmdb)\.ts/

export const isOfJournal = (name: string): boolean => JOURNAL_FILES.test(name) || JOURNAL_FUNCTIONS.test(name)
export const isOfCommit = (name: string): boolean => COMMIT_FUNCTIONS.test(name)

export interface ProfileShares {
  /** Share of the journal's functions in the CPU time of the main thread without garbage collection. */
  readonly functions: number
  /** Share of garbage collection in the CPU time of the main thread. */
  readonly collection: number
  /** Share of writing group commits in the CPU time of the main thread. */
  readonly commits: number
  /** The journal's share of allocated bytes. */
  readonly allocations: number
}

/**
 * Returns the shares of the main thread that the journal takes. Its part of garbage collection is estimated from
 * allocated bytes, and its part of writing commits from written bytes.
 */
export const partsOf = ({ functions, collection, commits, allocations }: ProfileShares, byteShare: number) => ({
  functions: functions * (1 - collection),
  collection: collection * allocations,
  commits: commits * byteShare,
})

/** Returns the time of the matching functions and of those that they call, without the ones in `except`. */
export function timeOf(
  flame: Flame,
  isMatch: (name: string) => boolean,
  except: (name: string) => boolean = () => false,
): number {
  if (except(flame.name)) return 0
  if (isMatch(flame.name)) return flame.total - timeOf({ ...flame, name: '' }, except)
  let time = 0
  for (const child of flame.children.values()) time += timeOf(child, isMatch, except)
  return time
}

/** The format of V8's sampling heap profiler. */
export interface AllocationProfile {
  readonly head: AllocationNode
}

interface AllocationNode {
  readonly callFrame: CallFrame
  readonly selfSize: number
  readonly children: readonly AllocationNode[]
}

/** Returns the bytes that were allocated, and those of the matching functions and the functions that they call. */
export function allocationsOf(
  { head }: AllocationProfile,
  nameOf: (frame: CallFrame) => string,
  isMatch: (name: string) => boolean,
): { readonly total: number; readonly matching: number } {
  let total = 0
  let matching = 0
  const visit = (node: AllocationNode, isCalledByMatch: boolean) => {
    const isCounted = isCalledByMatch || isMatch(nameOf(node.callFrame))
    total += node.selfSize
    if (isCounted) matching += node.selfSize
    for (const child of node.children) visit(child, isCounted)
  }
  visit(head, false)
  return { total, matching }
}
