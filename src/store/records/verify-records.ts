// Verifies records of an open store in revision order, for the scrub. It reads the file with system calls and reports a page
// that the device cannot read. Reading such a page through the memory map would end the process.
import type { RecordHeader, VerifiedSlice, VerifyOptions } from '../medium.ts'
import { newestMeta } from '../pages/check-pages.ts'
import { checkRange, type LeafNode, type PageProblem, type RangeCheck } from '../pages/check-tree.ts'
import type { Meta } from '../pages/page-format.ts'
import { PageMap } from '../pages/page-map.ts'
import { PageReader } from '../pages/page-reader.ts'
import type { Revision } from '../store.ts'
import { checksumOf } from './checksum.ts'
import {
  decodeHeader,
  HEADER,
  headerDamageOf,
  headerRevisionsOf,
  NAME_BYTES,
  nameOfSortKey,
  REVISION_MAX,
  readSortKey,
  sortKeyOf,
  VALUE,
} from './record-codec.ts'

const RECORD_BYTES = 100 // approximate size of a record without its value

export interface VerifyRecordsOptions extends VerifyOptions {
  /** The open file. */
  readonly fd: number
}

/** Verifies a slice. The caller holds an LMDB read transaction, so that pages of the newest state are not reused during the read. */
export function verifyRecords(options: VerifyRecordsOptions): VerifiedSlice {
  const slice = new SliceReader(options).read()
  // A meta page may have been read while a commit wrote it, so report only damage that a second read also finds.
  const isIntact = slice.damagedRecords.length === 0 && slice.damagedRanges.length === 0
  return isIntact ? slice : new SliceReader(options).read()
}

type Damage = VerifiedSlice['damagedRecords'][number]
type DamagedRange = VerifiedSlice['damagedRanges'][number]

class SliceReader {
  readonly #options: VerifyRecordsOptions
  readonly #reader: PageReader
  readonly #damagedRecords: Damage[] = []
  readonly #damagedRanges: DamagedRange[] = []
  /** The intact headers of the slice whose value has not been found yet. */
  readonly #headers = new Map<Revision, RecordHeader>()
  #lastRevision: Revision | undefined
  #records = 0
  #bytes = 0

  constructor(options: VerifyRecordsOptions) {
    this.#options = options
    this.#reader = new PageReader(options.fd)
  }

  read(): VerifiedSlice {
    const firstRevision = this.#options.afterRevision + 1
    const meta = newestMeta(this.#reader, (problem) => {
      this.#damagedRanges.push({ first: firstRevision, last: REVISION_MAX, reason: reasonOf(problem) })
    })
    if (meta) {
      this.#readHeaders(meta, firstRevision)
      this.#readValues(meta, firstRevision)
    }
    return {
      lastRevision: this.#lastRevision,
      bytes: this.#bytes,
      damagedRecords: this.#damagedRecords,
      damagedRanges: this.#damagedRanges,
    }
  }

  #readHeaders(meta: Meta, firstRevision: Revision): void {
    const { recordsMax, bytesMax } = this.#options
    let isEnd = false
    checkRange({
      ...this.#rangeOf(meta, sortKeyOf([HEADER, firstRevision])),
      isEnd: () => isEnd,
      onNode: ({ key, readData }) => {
        const [kind, revision] = nameOfSortKey(key)
        if (kind === HEADER) this.#addHeader(revision, readData())
        isEnd = kind !== HEADER || this.#records >= recordsMax || this.#bytes >= bytesMax
      },
      onProblem: (problem) => {
        for (const range of problem.keys ? headerRevisionsOf(problem.keys) : []) {
          const { last = REVISION_MAX } = range
          this.#damagedRanges.push({ first: Math.max(firstRevision, range.first), last, reason: reasonOf(problem) })
          this.#lastRevision = last
        }
      },
    })
  }

  #addHeader(revision: Revision, bytes: Buffer | undefined): void {
    this.#lastRevision = revision
    this.#records++
    this.#bytes += RECORD_BYTES
    const header = bytes ? decodeHeader(bytes) : { key: '', damage: 'its header cannot be read' }
    const reason = headerDamageOf(revision, header)
    if (reason) {
      this.#damagedRecords.push({ key: header.key, revision, reason })
      return
    }
    const { valueBytes, isDeleted } = header as RecordHeader
    this.#bytes += valueBytes
    if (!isDeleted) this.#headers.set(revision, header as RecordHeader)
  }

  #readValues(meta: Meta, firstRevision: Revision): void {
    const lastRevision = [...this.#headers.keys()].at(-1)
    if (lastRevision === undefined) return
    const problems: PageProblem[] = []
    let isEnd = false
    checkRange({
      ...this.#rangeOf(meta, sortKeyOf([VALUE, firstRevision])),
      isEnd: () => isEnd,
      onNode: (node) => {
        const [, revision] = nameOfSortKey(node.key)
        this.#compareValue(revision, node, problems)
        isEnd = revision >= lastRevision
      },
      onProblem: (problem) => void problems.push(problem),
    })
    for (const { key, revision } of this.#headers.values()) {
      const name = sortKeyOf([VALUE, revision])
      const problem = problems.find(({ keys }) => keys && keys.lower <= name && name < keys.upper)
      this.#damagedRecords.push({ key, revision, reason: problem ? reasonOf(problem) : 'its value is missing' })
    }
  }

  #compareValue(revision: Revision, { readData }: LeafNode, problems: readonly PageProblem[]): void {
    const header = this.#headers.get(revision)
    if (!header) return
    this.#headers.delete(revision)
    const value = readData()
    const { key, checksum } = header
    if (!value) this.#damagedRecords.push({ key, revision, reason: reasonOf(problems.at(-1)!) })
    else if (checksumOf(value) !== checksum) {
      this.#damagedRecords.push({ key, revision, reason: 'the checksum of its value does not match' })
    }
  }

  #rangeOf({ mainTree, transaction, lastPage }: Meta, firstKey: number): Omit<RangeCheck, CallbackName> {
    const format = { keyBytes: NAME_BYTES, readKey: readSortKey }
    const pages = new PageMap(lastPage + 1)
    return { reader: this.#reader, pages, tree: mainTree, transaction, firstKey, onPage() {}, ...format }
  }
}

type CallbackName = 'isEnd' | 'onNode' | 'onProblem'

const reasonOf = ({ page, problem }: PageProblem): string => `page ${page}: ${problem}`
