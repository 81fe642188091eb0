// Writes the LMDB store in a directory to a backup archive. Another process may write to the store at the same time: all
// entries are read in one LMDB read transaction, so the archive is a consistent snapshot.
import { join } from 'node:path'
import type { Transaction } from 'lmdb'
import { isDirectoryInUse } from '../files/directory-lock.ts'
import { STORE_FILE } from '../files/lmdb-copy.ts'
import { checkLmdbFile } from '../files/lmdb-file.ts'
import { parseDescription } from '../records/description.ts'
import { readName, VALUE } from '../records/record-codec.ts'
import { type RecordDamage, RecordInspector } from '../records/record-inspector.ts'
import { ENTRY_HEADER_BYTES, type Manifest, type StoreEntry } from './archive.ts'
import {
  DESCRIPTION_NAME,
  encodeName,
  HEADERS_START,
  openRawDb,
  type RawDb,
  revisionOf,
  VALUES_START,
} from './raw-entries.ts'
import type { ArchiveWriter } from './write-archive.ts'

const FRAME_BYTES = 256 * 1024 // a frame of this size takes no further entries
const KEPT_REVISIONS_PER_FRAME = 50_000

export interface DumpOptions {
  /** The store's directory. */
  readonly dir: string
  readonly id: string
  readonly createdAt: string
  /** The backup that an incremental archive continues. */
  readonly since?: Pick<Manifest, 'revision'> & Partial<Pick<Manifest, 'id' | 'storeFormat' | 'isMigrating'>>
  /** Called after the manifest, to add other frames. */
  readonly writeFiles?: (writer: ArchiveWriter) => Promise<void>
}

export interface Dump {
  readonly manifest: Manifest
  /** The records that do not match their checksums. The archive contains them unchanged. */
  readonly damagedRecords: readonly RecordDamage[]
}

/** Writes the archive completely, and compares its records with their checksums. */
export async function dumpStore(options: DumpOptions, writer: ArchiveWriter): Promise<Dump> {
  const path = join(options.dir, STORE_FILE)
  // A process that has opened the store has already checked the file, which can look truncated during a write.
  if (!(await isDirectoryInUse(options.dir))) await checkLmdbFile(path)
  const db = openRawDb(path, { isReadOnly: true })
  const transaction = db.useReadTransaction()
  try {
    return await new StoreDump(db, transaction, writer, path).write(options)
  } finally {
    transaction.done()
    await db.close()
  }
}

class StoreDump {
  readonly #db: RawDb
  readonly #transaction: Transaction
  readonly #writer: ArchiveWriter
  readonly #path: string
  readonly #inspector: RecordInspector
  #pendingEntries: StoreEntry[] = []
  #pendingBytes = 0

  constructor(db: RawDb, transaction: Transaction, writer: ArchiveWriter, path: string) {
    this.#db = db
    this.#transaction = transaction
    this.#writer = writer
    this.#path = path
    this.#inspector = new RecordInspector({ path })
  }

  async write({ id, createdAt, since, writeFiles }: DumpOptions): Promise<Dump> {
    const manifest = this.#manifestOf({ id, createdAt, since })
    await this.#writer.write({ type: 'manifest', manifest })
    await writeFiles?.(this.#writer)
    const sinceRevision = since?.revision ?? 0
    let storeEntries = 0
    for (const entry of this.#range(DESCRIPTION_NAME, HEADERS_START)) {
      storeEntries++
      await this.#add(entry)
    }
    storeEntries += await this.#writeHeaders(sinceRevision)
    storeEntries += this.#count(VALUES_START, encodeName(VALUE, sinceRevision + 1))
    for (const entry of this.#range(encodeName(VALUE, sinceRevision + 1))) {
      storeEntries++
      await this.#add(entry)
    }
    await this.#flush()
    await this.#writer.end(storeEntries)
    return { manifest, damagedRecords: this.#inspector.finish().damagedRecords }
  }

  #manifestOf({ id, createdAt, since }: Pick<DumpOptions, 'id' | 'createdAt' | 'since'>): Manifest {
    const bytes = this.#db.get(DESCRIPTION_NAME, { transaction: this.#transaction })
    if (!bytes) throw new Error(`${this.#path} is not a Stowage store.`)
    const { format, floors, migratingFrom } = parseDescription(this.#path, bytes)
    const revision = Math.max(floors.ordinary, floors.brief, this.#lastRevision())
    if (since?.isMigrating || (since?.storeFormat ?? format) !== format) {
      throw new Error('The format of the store has changed since the earlier backup: create a full backup.')
    }
    if (since && since.revision > revision) {
      throw new Error(`The store is at revision ${revision}, before the earlier backup at ${since.revision}.`)
    }
    const migration: Pick<Manifest, 'isMigrating'> = migratingFrom === undefined ? {} : { isMigrating: true }
    const common = { id, createdAt, storeFormat: format, ...migration, revision }
    return since ? { ...common, since: since.revision, ...(since.id ? { parent: since.id } : {}) } : common
  }

  #lastRevision(): number {
    const range = { start: VALUES_START, end: HEADERS_START, reverse: true, limit: 1, transaction: this.#transaction }
    for (const name of this.#db.getKeys(range)) return revisionOf(name)
    return 0
  }

  /** Writes the headers after a revision, and the list of earlier revisions. Resolves with the number of all headers. */
  async #writeHeaders(sinceRevision: number): Promise<number> {
    let count = 0
    let keptAfter = 0
    let revisions: number[] = []
    for (const entry of this.#range(HEADERS_START, VALUES_START)) {
      count++
      const revision = revisionOf(entry.name)
      if (revision > sinceRevision) await this.#add(entry)
      else if (revisions.push(revision) === KEPT_REVISIONS_PER_FRAME) {
        await this.#writer.write({
          type: 'kept',
          kept: { afterRevision: keptAfter, upToRevision: revision, revisions },
        })
        keptAfter = revision
        revisions = []
      }
    }
    if (sinceRevision > keptAfter)
      await this.#writer.write({
        type: 'kept',
        kept: { afterRevision: keptAfter, upToRevision: sinceRevision, revisions },
      })
    return count
  }

  *#range(start: Buffer, end?: Buffer): Generator<StoreEntry> {
    for (const { key, value } of this.#db.getRange({ start, end, transaction: this.#transaction })) {
      yield { name: Buffer.from(key), value }
    }
  }

  #count(start: Buffer, end: Buffer): number {
    return this.#db.getKeysCount({ start, end, transaction: this.#transaction })
  }

  async #add(entry: StoreEntry): Promise<void> {
    this.#inspector.add(readName(entry.name, 0), entry.value)
    this.#pendingEntries.push(entry)
    this.#pendingBytes += ENTRY_HEADER_BYTES + entry.name.length + entry.value.length
    if (this.#pendingBytes >= FRAME_BYTES) await this.#flush()
  }

  async #flush(): Promise<void> {
    if (this.#pendingEntries.length === 0) return
    const entries = this.#pendingEntries
    this.#pendingEntries = []
    this.#pendingBytes = 0
    await this.#writer.write({ type: 'entries', entries })
  }
}
