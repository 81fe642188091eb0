// Formats rows of text in columns.

export interface TableOptions {
  /** Indexes of the columns that are aligned to the right, such as numbers. Default: none. */
  readonly rightAligned?: ReadonlySet<number>
}

/** Formats rows in columns that are as wide as their content and two spaces apart. Colors have no width. */
export function formatTable(
  rows: readonly (readonly string[])[],
  { rightAligned = new Set() }: TableOptions = {},
): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? '')))) ?? []
  const formatCell = (cell: string, column: number) => {
    const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)))
    return rightAligned.has(column) ? `${padding}${cell}` : `${cell}${padding}`
  }
  return rows.map((row) => `${row.map(formatCell).join('  ').trimEnd()}\n`).join('')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape sequences of colors
const COLOR_SEQUENCES = /\u001b\[\d*m/g

const widthOf = (cell: string): number => cell.replace(COLOR_SEQUENCES, '').length
