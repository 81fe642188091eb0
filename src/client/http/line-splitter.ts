// Splits a stream of bytes into lines. A line that arrives in several chunks and is too long is an error, which bounds the
// buffered bytes.

class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError'
}

export class LineSplitter {
  readonly #bytesMax: number
  #chunks: Buffer[] = []
  #size = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns the lines that `chunk` completes, without newlines or empty lines. */
  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      const line = this.#completeLine(chunk.subarray(start, end))
      if (line !== '') lines.push(line)
      start = end + 1
    }
    if (start < chunk.length) this.#buffer(chunk.subarray(start))
    return lines
  }

  #completeLine(end: Buffer): string {
    if (this.#chunks.length === 0) return end.toString('utf8')
    this.#buffer(end)
    const line = Buffer.concat(this.#chunks).toString('utf8')
    this.#chunks = []
    this.#size = 0
    return line
  }

  #buffer(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size > this.#bytesMax) throw new LineTooLongError(`a line is longer than ${this.#bytesMax} bytes`)
    this.#chunks.push(chunk)
  }
}
