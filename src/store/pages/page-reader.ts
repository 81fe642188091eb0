// Reads the pages of an LMDB file with system calls. Unlike a memory map, this cannot crash the process, regardless of the content of the
// file.
import { fstatSync, readSync } from 'node:fs'

const BLOCK_PAGES = 64 // read at once where pages follow each other in the file

export class PageReader {
  readonly fd: number
  readonly size: number
  #pageBytes = 4_096
  #block = Buffer.alloc(0)
  #blockStart = 0
  #blockEnd = 0

  constructor(fd: number) {
    this.fd = fd
    this.size = fstatSync(fd).size
  }

  get pageBytes(): number {
    return this.#pageBytes
  }

  set pageBytes(bytes: number) {
    this.#pageBytes = bytes
    const blockBytes = bytes * BLOCK_PAGES
    if (this.#block.length !== blockBytes) this.#block = Buffer.allocUnsafeSlow(blockBytes)
    this.#blockStart = 0
    this.#blockEnd = 0
  }

  /** Whether the file contains all of the `count` pages from `firstPage` on. */
  has(firstPage: number, count = 1): boolean {
    return firstPage >= 0 && (firstPage + count) * this.#pageBytes <= this.size
  }

  /**
   * Returns a page. The caller must have checked that the page exists. The bytes are valid until the next read of a page. Throws if
   * the device cannot read the page.
   */
  read(page: number): Buffer {
    const start = page * this.#pageBytes
    if (start < this.#blockStart || start + this.#pageBytes > this.#blockEnd) this.#load(start)
    const offset = start - this.#blockStart
    return this.#block.subarray(offset, offset + this.#pageBytes)
  }

  /** Returns a copy of `length` bytes at a position, or fewer at the end of the file. Throws if the device cannot read them. */
  readBytes(position: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.size - position)))
    let filledBytes = 0
    while (filledBytes < bytes.length) {
      const count = readSync(this.fd, bytes, filledBytes, bytes.length - filledBytes, position + filledBytes)
      if (count === 0) break
      filledBytes += count
    }
    return bytes.subarray(0, filledBytes)
  }

  #load(start: number): void {
    const isSequential = start === this.#blockEnd
    this.#blockStart = this.#blockEnd = 0 // nothing is loaded if the read fails
    const count = isSequential ? this.#readBlock(start) : this.#readPage(start)
    if (count < this.#pageBytes) throw new Error(`the file ended at byte ${start + count} while it was read`)
    this.#blockStart = start
    this.#blockEnd = start + count
  }

  #readPage(start: number): number {
    return readSync(this.fd, this.#block, 0, this.#pageBytes, start)
  }

  /** Reads several pages, or only the first if the device cannot read all of them. */
  #readBlock(start: number): number {
    try {
      return readSync(this.fd, this.#block, 0, this.#block.length, start)
    } catch {
      return this.#readPage(start)
    }
  }
}
