// RecordInspector: compares the headers and values of a store with their checksums. A store file and a backup archive
// have them in this order: the description, all headers, all values.
import type { MediumRecord, RecordHeader } from '../medium.ts'
import type { Revision } from '../store.ts'
import { checksumOf } from './checksum.ts'
import { type Description, parseDescription } from './description.ts'
import {
  type DamagedHeader,
  DESCRIPTION,
  decodeHeader,
  HEADER,
  isDamagedHeader,
  isOldHeader,
  type OldHeader,
  type RecordName,
  VALUE,
} from './record-codec.ts'

export interface RecordDamage {
  readonly revision: Revision
  /** Undefined if the header is missing. It may be wrong if the header is damaged. */
  readonly key: string | undefined
  readonly reason: string
  /** Whether its value was found. The value may be damaged. */
  readonly hasValue: boolean
}

export interface RecordsInspection {
  /** Undefined if the description is missing or damaged. */
  readonly description: Description | undefined
  /** The number of intact records. */
  readonly records: number
  readonly newestRevision: Revision
  /** In revision order. */
  readonly damagedRecords: readonly RecordDamage[]
}

export interface RecordInspectorOptions {
  /** The name of the file in errors. */
  readonly path: string
  /** Called for every intact record, tombstones first. */
  readonly onRecord?: (record: MediumRecord) => void
}

export class RecordInspector {
  readonly #path: string
  readonly #onRecord: (record: MediumRecord) => void
  /** Headers whose value has not been found yet. */
  readonly #headers = new Map<Revision, RecordHeader>()
  readonly #damage = new Map<Revision, RecordDamage>()
  #description: Description | undefined
  #records = 0
  #newestRevision: Revision = 0

  constructor({ path, onRecord = () => {} }: RecordInspectorOptions) {
    this.#path = path
    this.#onRecord = onRecord
  }

  /** Adds an entry. Its data is undefined if it cannot be read. Throws for a format that this version does not know. */
  add([kind, revision]: RecordName, data: Buffer | undefined): void {
    if (kind === DESCRIPTION) this.#description = data && readDescription(this.#path, data)
    else if (kind === HEADER) this.#addHeader(revision, data)
    else if (kind === VALUE) this.#addValue(revision, data)
    else this.#report(revision, undefined, `it has the unknown kind ${kind}`)
    this.#newestRevision = Math.max(this.#newestRevision, revision)
  }

  finish(): RecordsInspection {
    for (const { revision, key } of this.#headers.values()) this.#report(revision, key, 'its value is missing')
    const damagedRecords = [...this.#damage.values()].sort((a, b) => a.revision - b.revision)
    const { ordinary = 0, brief = 0 } = this.#description?.floors ?? {}
    return {
      description: this.#description,
      records: this.#records,
      newestRevision: Math.max(this.#newestRevision, ordinary, brief),
      damagedRecords,
    }
  }

  #addHeader(revision: Revision, bytes: Buffer | undefined): void {
    if (!bytes) {
      this.#report(revision, undefined, 'its header cannot be read')
      return
    }
    const decodedHeader = decodeHeader(bytes)
    const reason = this.#headerDamageOf(revision, decodedHeader)
    if (reason) {
      this.#report(revision, decodedHeader.key, reason)
      return
    }
    // A header of format 1 has no checksum: its value is accepted as it is.
    const noChecksum = { revision, checksum: Number.NaN, valueBytes: 0 }
    const header = isOldHeader(decodedHeader) ? { ...decodedHeader, ...noChecksum } : (decodedHeader as RecordHeader)
    if (header.isDeleted) this.#accept(header, NO_VALUE)
    else this.#headers.set(revision, header)
  }

  #headerDamageOf(revision: Revision, header: RecordHeader | DamagedHeader | OldHeader): string | undefined {
    if (isDamagedHeader(header)) return header.damage
    if (!isOldHeader(header)) {
      return header.revision === revision ? undefined : `its header belongs to revision ${header.revision}`
    }
    const isOldStore = this.#description?.format === 2 || this.#description?.migratingFrom !== undefined
    return isOldStore ? undefined : 'its header has an older format than the store'
  }

  #addValue(revision: Revision, value: Buffer | undefined): void {
    const header = this.#headers.get(revision)
    if (!header) {
      const { key, reason = 'its header is missing' } = this.#damage.get(revision) ?? {}
      this.#damage.set(revision, { revision, key, reason, hasValue: value !== undefined })
      return
    }
    this.#headers.delete(revision)
    const isOld = Number.isNaN(header.checksum)
    if (!value) this.#report(revision, header.key, 'its value cannot be read')
    else if (isOld || checksumOf(value) === header.checksum) this.#accept(header, value)
    else this.#report(revision, header.key, 'the checksum of its value does not match', true)
  }

  #accept(header: RecordHeader, value: Uint8Array): void {
    this.#records++
    const { key, revision, createRevision, expiresAtMs, isDeleted } = header
    const [checksum, valueBytes] = [checksumOf(value), value.length]
    this.#onRecord({ key, revision, createRevision, expiresAtMs, isDeleted, checksum, valueBytes, value })
  }

  #report(revision: Revision, key: string | undefined, reason: string, hasValue = false): void {
    this.#damage.set(revision, { revision, key: key || undefined, reason, hasValue })
  }
}

const NO_VALUE = new Uint8Array(0)

/** Returns undefined for a damaged description. Throws for an unknown format. */
function readDescription(path: string, bytes: Buffer): Description | undefined {
  try {
    return parseDescription(path, bytes)
  } catch (error) {
    if (/ is damaged: | is not a Stowage store/.test((error as Error).message)) return undefined
    throw error
  }
}
