// PageMap: which pages of an LMDB file are in use. A page that is used twice indicates damage: one of its users refers to a
// page of the other.

export class PageMap {
  readonly #isUsed: Uint8Array

  constructor(pages: number) {
    this.#isUsed = new Uint8Array(pages)
  }

  /** Marks pages as used. Returns false, and marks none, if one is outside of the file or in use. */
  markUsed(firstPage: number, count: number): boolean {
    if (!Number.isSafeInteger(firstPage) || firstPage < 0 || count < 1 || firstPage + count > this.#isUsed.length)
      return false
    for (let page = firstPage; page < firstPage + count; page++) if (this.#isUsed[page] === 1) return false
    this.#isUsed.fill(1, firstPage, firstPage + count)
    return true
  }
}
