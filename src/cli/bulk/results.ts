// What came of each claim of a set, for people and for exit codes.
import type { ObjectKey } from '../../client/index.ts'

export interface ClaimResult {
  readonly key: ObjectKey
  /**
   * `unfinished`: begun, and we were stopped before its end; it goes on by itself. `untouched`: not begun, because of
   * failures before it or because we were stopped.
   */
  readonly is: 'done' | 'nothing' | 'failed' | 'unfinished' | 'untouched'
  readonly message: string
}

export const countOf = (results: readonly ClaimResult[], ...kinds: readonly ClaimResult['is'][]): number =>
  results.filter(({ is }) => kinds.includes(is)).length

/** Columns as wide as they must be, two spaces apart. The last is as long as it is. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return rows.map((row) => `${line(row)}\n`).join('')
}
