// Runs a bulk command: finds the results that are known before the start, runs the other tasks, and decides the exit code.
// run-claims.ts runs the tasks with bounded concurrency; the command provides the tasks and the report.
import type { ObjectKey } from '../../client/index.ts'
import { mapConcurrently } from '../../client/map-concurrently.ts'
import { ExitError } from '../exit-error.ts'
import { type BulkDeps, CONCURRENT_REQUESTS_MAX } from './deps.ts'
import type { BulkRequest } from './flags.ts'
import { createProgress, type ProgressStyle } from './progress.ts'
import { type ClaimResult, countResults, isComplete } from './results.ts'
import { type ClaimTask, type FinalStatus, runClaims } from './run-claims.ts'
import type { ClaimCache } from './with-client.ts'

const INTERRUPTED_EXIT_CODE = 130

export type KnownResults = ReadonlyMap<ObjectKey, ClaimResult>

/** Finds the results that are known before any task is started. Does not write. */
export async function findKnownResults<T extends ClaimTask>(
  tasks: readonly T[],
  find: (task: T) => Promise<FinalStatus | undefined>,
): Promise<KnownResults> {
  const statuses = await mapConcurrently(tasks, CONCURRENT_REQUESTS_MAX, find)
  return new Map(
    tasks.flatMap(({ key }, index) => {
      const status = statuses[index]
      return status ? [[key, { key, ...status }]] : []
    }),
  )
}

/** Returns whether no task is started: in a dry run, or if too many claims would fail. */
export const shouldStartNothing = (knownResults: KnownResults, { isDryRun, failuresMax }: BulkRequest): boolean =>
  isDryRun || countResults([...knownResults.values()], 'failed') > failuresMax

export interface BulkRun<T extends ClaimTask> {
  readonly tasks: readonly T[]
  readonly knownResults: KnownResults
  /** Returns a claim's status if no task is started. */
  statusIfNotStarted(task: T): Omit<ClaimResult, 'key'>
  /** Calls `run` with a cache of the claims. Not called if no task is started. */
  watchClaims(run: (claims: ClaimCache) => Promise<ClaimResult[]>): Promise<ClaimResult[]>
  readonly progressStyle: ProgressStyle
}

/** Returns the results in the order of the tasks. */
export async function runBulk<T extends ClaimTask>(
  { tasks, knownResults, statusIfNotStarted, watchClaims, progressStyle }: BulkRun<T>,
  request: BulkRequest,
  deps: BulkDeps,
): Promise<readonly ClaimResult[]> {
  if (shouldStartNothing(knownResults, request)) {
    return tasks.map((task) => knownResults.get(task.key) ?? { key: task.key, ...statusIfNotStarted(task) })
  }
  const { clock, signal } = deps
  const progress = deps.observe?.(tasks.length) ?? createProgress(progressStyle, request.output, deps, tasks.length)
  for (const result of knownResults.values()) progress.complete(result)
  const remainingTasks = tasks.filter(({ key }) => !knownResults.has(key))
  const failuresMax = request.failuresMax - countResults([...knownResults.values()], 'failed')
  try {
    const results = await watchClaims((claims) =>
      runClaims(remainingTasks, { ...request, claims, failuresMax, clock, signal, progress }),
    )
    const resultsByKey = new Map(results.map((result) => [result.key, result]))
    return tasks.map(({ key }) => knownResults.get(key) ?? resultsByKey.get(key)!)
  } finally {
    progress.finish()
  }
}

/** Throws ExitError unless the exit code is 0. */
export function exitUnlessSuccessful(
  results: readonly ClaimResult[],
  { isDryRun }: BulkRequest,
  signal: AbortSignal,
): void {
  if (signal.aborted && !isComplete(results)) throw createInterruptedError()
  if (isDryRun ? countResults(results, 'failed') > 0 : !isComplete(results)) throw new ExitError(1)
}

export const createInterruptedError = (): ExitError => new ExitError(INTERRUPTED_EXIT_CODE)
