// The results of a bulk command: how they are counted and named.
import type { ObjectKey } from '../../client/index.ts'

export interface ClaimResult {
  readonly key: ObjectKey
  /**
   * `unfinished`: the command was interrupted before the claim was done; if the change is started, the controllers continue
   * it. `untouched`: the claim was not started, because of a dry run, because of earlier failures, or because the command was
   * interrupted.
   */
  readonly is: 'done' | 'nothing' | 'failed' | 'unfinished' | 'untouched'
  readonly message: string
  /** Whether the change was written, by this run or an earlier one, and the server confirmed it. */
  readonly isStarted?: boolean
  /** Whether the claim does not request the change, because it was deleted or another client changed it. */
  readonly isWithdrawn?: boolean
}

export const countResults = (results: readonly ClaimResult[], ...kinds: readonly ClaimResult['is'][]): number =>
  results.filter(({ is }) => kinds.includes(is)).length

/** Returns whether every claim has reached the requested state. */
export const isComplete = (results: readonly ClaimResult[]): boolean =>
  countResults(results, 'done', 'nothing') === results.length

/** Returns the name of a result in the output. Each command has its own `done` and `planned`: `grown`, `would grow`. */
export function resultName(
  { is }: ClaimResult,
  { done, planned, isDryRun }: { readonly done: string; readonly planned: string; readonly isDryRun: boolean },
): string {
  if (isDryRun && is === 'untouched') return planned
  if (isDryRun && is === 'failed') return 'refused'
  return { done, nothing: 'unchanged', failed: 'failed', unfinished: 'unfinished', untouched: 'not begun' }[is]
}
