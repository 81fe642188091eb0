// Extends the file of an LMDB store ahead of its commits, by writing zeros behind its end. A commit that extends the file
// waits until the file system has also committed its own journal; a third of the commits of single creates did.
//
//   file    used by LMDB …………| reserve (zeros) |end
//
// LMDB never looks at the size of the file: it writes the next page that its meta page does not count as used, and replaces the
// zeros. The reserve begins at the end of the file, so it cannot overwrite a page, as long as no commit is in progress.
import { fstatSync, ftruncateSync, writeSync } from 'node:fs'

const RESERVE_BYTES = { min: 64 * 1024, max: 512 * 1024 } // a quarter of the used bytes, within these limits
const FREE_BYTES_MIN = 32 * 1024 // the file is extended when less of it is free

export interface FileReserveOptions {
  /** The open file, to write. */
  readonly fd: number
  /** Returns the number of bytes at the beginning of the file that LMDB uses, or undefined if its meta pages cannot be read. */
  readonly usedBytes: () => number | undefined
}

export class FileReserve {
  readonly #options: FileReserveOptions
  /** At least this much was free at the last look, less what commits may have used since. */
  #freeBytesMin = 0
  /** Set after the file could not be extended, for example because the disk is full. */
  #isOff = false

  constructor(options: FileReserveOptions) {
    this.#options = options
  }

  /**
   * Extends the file if a commit of at most `bytes` may otherwise do it. Must be called while no commit is in progress. Does not
   * throw: LMDB also extends the file, and reports errors.
   */
  prepare(bytes: number): void {
    this.#freeBytesMin -= bytes
    if (this.#isOff || this.#freeBytesMin >= 0) return
    const usedBytes = this.#options.usedBytes()
    if (usedBytes === undefined) return
    const { fd } = this.#options
    const size = fstatSync(fd).size
    this.#freeBytesMin = size - usedBytes
    if (this.#freeBytesMin >= FREE_BYTES_MIN) return
    const reserveBytes = Math.min(Math.max(Math.floor(usedBytes / 4), RESERVE_BYTES.min), RESERVE_BYTES.max)
    try {
      writeZeros(fd, size, reserveBytes)
      this.#freeBytesMin += reserveBytes
    } catch {
      this.#isOff = true
      truncate(fd, size) // leaves the rest of a full disk to LMDB
    }
  }
}

function truncate(fd: number, size: number): void {
  try {
    ftruncateSync(fd, size)
  } catch {
    // The file remains longer, which is harmless.
  }
}

function writeZeros(fd: number, position: number, length: number): void {
  const zeros = Buffer.alloc(length)
  for (let written = 0; written < length; )
    written += writeSync(fd, zeros, written, length - written, position + written)
}
