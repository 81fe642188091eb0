// Parses the tables that kubectl prints. Columns are aligned: a cell starts at the position of its header and may be empty.

export interface PrintedTable {
  readonly headers: readonly string[]
  /** Cells by header. */
  readonly rows: readonly Readonly<Record<string, string>>[]
}

export function parseTable(text: string): PrintedTable {
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '')
  // At least two spaces end a header, because "ACCESS MODES" contains one.
  const starts = [...head.matchAll(/(?<=^|\s{2})\S/g)].map((match) => match.index)
  const splitCells = (line: string) => starts.map((start, index) => line.slice(start, starts[index + 1]).trim())
  const headers = splitCells(head)
  return {
    headers,
    rows: lines.map((line) => Object.fromEntries(splitCells(line).map((cell, index) => [headers[index]!, cell]))),
  }
}
