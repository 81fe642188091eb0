// Splits a stream of bytes into lines. A line that is too long is an error, so that memory stays bounded.

export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError'
}

export class LineSplitter {
  readonly #bytesMax: number
  #parts: Buffer[] = []
  #size = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The lines that `chunk` completes, without newlines and without empty lines. */
  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
      const line = this.#take(chunk.subarray(from, at))
      if (line !== '') lines.push(line)
      from = at + 1
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
    return lines
  }

  /** The text after the last newline. */
  rest(): string {
    return this.#take(Buffer.alloc(0))
  }

  #take(end: Buffer): string {
    if (this.#parts.length === 0) return end.toString('utf8')
    this.#keep(end)
    const line = Buffer.concat(this.#parts).toString('utf8')
    this.#parts = []
    this.#size = 0
    return line
  }

  #keep(part: Buffer): void {
    this.#size += part.length
    if (this.#size > this.#bytesMax) throw new LineTooLongError(`a line is longer than ${this.#bytesMax} bytes`)
    this.#parts.push(part)
  }
}
