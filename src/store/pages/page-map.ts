// PageMap: what each page of an LMDB file is used for. A page that is used twice shows damage: one of its users refers to a
// page of the other.

export const UNUSED = 0
export const META = 1
export const FREE_TREE = 2
export const MAIN_TREE = 3
export const FREE = 4

export class PageMap {
  readonly #uses: Uint8Array

  constructor(pages: number) {
    this.#uses = new Uint8Array(pages)
  }

  get pages(): number {
    return this.#uses.length
  }

  /** Marks pages as used. Returns false, and marks none, if one is outside of the file or in use. */
  claim(first: number, count: number, use: number): boolean {
    if (!Number.isSafeInteger(first) || first < 0 || count < 1 || first + count > this.#uses.length) return false
    for (let page = first; page < first + count; page++) if (this.#uses[page] !== UNUSED) return false
    this.#uses.fill(use, first, first + count)
    return true
  }

  useOf(page: number): number | undefined {
    return this.#uses[page]
  }

  /** Returns the pages without a use. */
  unused(): number[] {
    const pages: number[] = []
    this.#uses.forEach((use, page) => {
      if (use === UNUSED) pages.push(page)
    })
    return pages
  }
}
