// Parses the tables that kubectl prints: columns are aligned, so a cell starts where its header does and may be empty.

export interface PrintedTable {
  readonly headers: readonly string[]
  /** Cells by header. */
  readonly rows: readonly Readonly<Record<string, string>>[]
}

export function readTable(text: string): PrintedTable {
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '')
  // At least two blanks end a header: "ACCESS MODES" has one inside.
  const starts = [...head.matchAll(/(?<=^|\s{2})\S/g)].map((match) => match.index)
  const cells = (line: string) => starts.map((start, index) => line.slice(start, starts[index + 1]).trim())
  const headers = cells(head)
  return {
    headers,
    rows: lines.map((line) => Object.fromEntries(cells(line).map((cell, index) => [headers[index]!, cell]))),
  }
}
