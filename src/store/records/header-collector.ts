// HeaderCollector: collects the headers of a file while its pages are checked, so that opening the store does not read them twice.
import type { LeafNode } from '../pages/check-tree.ts'
import type { Revision } from '../store.ts'
import { decodeHeader, HEADER, nameOfSortKey } from './record-codec.ts'

export interface NamedHeader {
  /** The revision in the name of the header. */
  readonly revision: Revision
  readonly header: ReturnType<typeof decodeHeader>
}

export class HeaderCollector {
  #headers: NamedHeader[] | undefined = []

  /**
   * Returns the headers in revision order and releases them. Returns undefined if one of them has a format that this version
   * does not know.
   */
  releaseHeaders(): readonly NamedHeader[] | undefined {
    const headers = this.#headers
    this.#headers = undefined
    return headers
  }

  add({ key: name, readData }: LeafNode): void {
    const [kind, revision] = nameOfSortKey(name)
    if (kind !== HEADER || !this.#headers) return
    const bytes = readData()
    if (!bytes) return
    try {
      this.#headers.push({ revision, header: decodeHeader(bytes) })
    } catch {
      this.#headers = undefined // the description of the store, which is read next, names the version that wrote it
    }
  }
}
