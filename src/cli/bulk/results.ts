// The result of each claim of a bulk command, and how results are counted, named and printed.
import type { ObjectKey } from '../../client/index.ts'

export interface ClaimResult {
  readonly key: ObjectKey
  /**
   * `unfinished`: started, and the command was stopped first; the controllers continue. `untouched`: not started, because
   * of earlier failures or because the command was stopped.
   */
  readonly is: 'done' | 'nothing' | 'failed' | 'unfinished' | 'untouched'
  readonly message: string
}

export const countOf = (results: readonly ClaimResult[], ...kinds: readonly ClaimResult['is'][]): number =>
  results.filter(({ is }) => kinds.includes(is)).length

/** Every claim has what the command requests. */
export const isComplete = (results: readonly ClaimResult[]): boolean =>
  countOf(results, 'done', 'nothing') === results.length

/** `done` and `planned` are the command's words: `grown` and `would grow`. */
export function resultName(
  { is }: ClaimResult,
  { done, planned, isDryRun }: { readonly done: string; readonly planned: string; readonly isDryRun: boolean },
): string {
  if (isDryRun && is === 'untouched') return planned
  if (isDryRun && is === 'failed') return 'refused'
  return { done, nothing: 'unchanged', failed: 'failed', unfinished: 'unfinished', untouched: 'not begun' }[is]
}

export const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

/** Columns two spaces apart, as wide as their content; the last one is not padded. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return rows.map((row) => `${line(row)}\n`).join('')
}
