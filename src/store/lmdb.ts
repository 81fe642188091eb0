// The LMDB medium of the embedded store: acknowledged writes survive a crash of the process and a power failure.
// revisioned-store.ts implements transactions, watches and compaction.
//
// A single LMDB tree contains, in key order, the description of the store, the headers of all records, and their values.
// Separate trees would add several pages to every commit.

import assert from 'node:assert/strict'
import { closeSync, openSync, statSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { open as openLmdb, type RootDatabase } from 'lmdb'
import { describeDiskSpace, requireWritableSpace } from '../base/disk-space.ts'
import { ensureDirectory, syncDirectory } from '../base/files.ts'
import { type DirectoryLock, lockDirectory } from './files/directory-lock.ts'
import { changeOfFile, type FileIdentity, identifyFile } from './files/file-identity.ts'
import { FileReserve } from './files/file-reserve.ts'
import { STORE_FILE } from './files/lmdb-copy.ts'
import { checkLmdbFile } from './files/lmdb-file.ts'
import { ensureLockFile, lockFileOf } from './files/lmdb-lock-file.ts'
import { silenceLmdbErrors } from './lmdb-console.ts'
import {
  AppendRejectedError,
  type Floors,
  type Medium,
  type MediumBatch,
  MediumLostError,
  type RecordHeader,
  UnreadableValueError,
  type VerifiedSlice,
  type VerifyOptions,
  type WriteOptions,
} from './medium.ts'
import { EntryReader, UnreadablePageError } from './pages/entry-reader.ts'
import {
  type Description,
  encodeDescription,
  foreignFileError,
  newDescription,
  parseDescription,
  STORE_FORMAT,
} from './records/description.ts'
import { HeaderCollector, type NamedHeader } from './records/header-collector.ts'
import { addChecksums, type MigrationProgress } from './records/migration.ts'
import {
  type DamagedHeader,
  DESCRIPTION,
  decodeHeader,
  encodeHeader,
  HEADER,
  headerDamageOf,
  isDamagedHeader,
  isOldHeader,
  NAME_BYTES,
  type OldHeader,
  type RecordName,
  readName,
  readSortKey,
  sortKeyOf,
  VALUE,
  writeName,
} from './records/record-codec.ts'
import { verifyRecords } from './records/verify-records.ts'
import { openRevisionedStore, type RevisionedStoreOptions } from './revisioned-store.ts'
import type { Revision, Store } from './store.ts'

const DESCRIPTION_NAME: RecordName = [DESCRIPTION, 0]
const HEADERS: { start: RecordName; end: RecordName } = { start: [HEADER, 0], end: [VALUE, 0] }

const NOT_LAST = 'a value was not appended after all others'

/** Larger commits extend the file themselves: they do it too seldom to pay for writing it twice. */
const RESERVED_BYTES_MAX = 256 * 1024
/** Pages that any commit may add: copies of those between the changed leaves and the root, and lists of free pages. */
const PAGES_PER_COMMIT = 8
const PAGE_BYTES = 4_096

/** LMDB crashes if the disk becomes full while it opens a file. */
const OPEN_BYTES_MIN = 2 ** 20

/** Values are written as bytes. A range returns headers, which are decoded directly from LMDB's memory. */
type Db = RootDatabase<Uint8Array | DecodedHeader, RecordName>

type DecodedHeader = RecordHeader | DamagedHeader | OldHeader

/** The reasons for commit errors after which LMDB has written nothing and remains usable, by error code. */
const REJECTION_REASONS: ReadonlyMap<number, string> = new Map([
  [28, 'the disk is full (ENOSPC)'],
  [122, 'the disk quota is used up (EDQUOT)'],
  [27, 'the file has reached the file size limit (EFBIG)'],
  // LMDB reports a short write as EIO. The meta page, which makes a commit valid, is written last, so the commit is void.
  [5, 'a write was incomplete: the disk is full or failing (EIO)'],
  [12, 'there is not enough memory (ENOMEM)'],
  [-30792, 'the store has reached its maximum size (MDB_MAP_FULL)'],
])

export interface LmdbStoreOptions extends Omit<RevisionedStoreOptions, 'medium'> {
  /** Created if it does not exist. Only one process at a time can use it. */
  readonly dir: string
  /** Called after each commit of a migration from an older format. */
  readonly onMigration?: (progress: MigrationProgress) => void
}

export async function openLmdbStore({ dir, onMigration, ...options }: LmdbStoreOptions): Promise<Store> {
  const medium = await openLmdbMedium(dir, onMigration)
  try {
    return await openRevisionedStore({ medium, ...options })
  } catch (error) {
    await medium.close()
    throw error
  }
}

/** Opens or creates the file of a store in a directory. */
export async function openLmdbMedium(dir: string, onMigration?: LmdbStoreOptions['onMigration']): Promise<Medium> {
  await ensureDirectory(dir)
  silenceLmdbErrors()
  const lock = await lockDirectory(dir)
  const path = join(dir, STORE_FILE)
  let db: Db | undefined
  let fd: number | undefined
  try {
    const collector = new HeaderCollector()
    const checkedTransaction = await checkLmdbFile(path, { onNode: (node) => collector.add(node) })
    await requireWritableSpace(dir, OPEN_BYTES_MIN)
    await ensureLockFile(path)
    db = openLmdb({
      path,
      noSubdir: true,
      keyEncoder: { writeKey: writeName, readKey: readName },
      encoder: { encode: (bytes: Uint8Array) => bytes, decode: decodeHeader },
      maxDbs: 1,
      eventTurnBatching: false, // errors of an implicit outer batch would not be reported
      // A commit writes the data pages, calls fdatasync, writes the meta page through a descriptor opened with O_DSYNC,
      // and then settles the promise. LMDB runs one commit at a time, so overlapping commits would not be faster.
      overlappingSync: false,
    })
    await chmod(path, 0o600) // the store contains Secrets
    const files = [identifyFile(path), identifyFile(lockFileOf(path))]
    fd = openSync(path, 'r+')
    // If the newest transaction of LMDB is not the one that was checked, the headers are read through LMDB.
    const { lastTxnId } = db.getStats() as { lastTxnId: number }
    const collectedHeaders = collector.releaseHeaders() // even if unused: closures keep the collector alive
    const headers = lastTxnId === checkedTransaction ? collectedHeaders : undefined
    const medium = new LmdbMedium({ db, path, fd, files, lock, headers })
    await medium.loadOrCreateDescription()
    await medium.migrate(onMigration)
    await syncDirectory(dir) // otherwise a power failure could remove the file itself
    return medium
  } catch (error) {
    await db?.close()
    if (fd !== undefined) closeSync(fd)
    await lock.release()
    throw error
  }
}

interface LmdbMediumOptions {
  readonly db: Db
  readonly path: string
  /** The open file, to read it without the memory map, and to extend it. */
  readonly fd: number
  /** The files that LMDB has open: the store and its table of readers. */
  readonly files: readonly FileIdentity[]
  readonly lock: DirectoryLock
  /** The headers that the check of the file has read, for the scan. */
  readonly headers: readonly NamedHeader[] | undefined
}

class LmdbMedium implements Medium {
  readonly #db: Db
  readonly #path: string
  readonly #fd: number
  readonly #files: readonly FileIdentity[]
  readonly #lock: DirectoryLock
  readonly #entries: EntryReader
  readonly #reserve: FileReserve
  #headers: readonly NamedHeader[] | undefined
  #description = newDescription()

  constructor({ db, path, fd, files, lock, headers }: LmdbMediumOptions) {
    this.#db = db
    this.#path = path
    this.#fd = fd
    this.#files = files
    this.#lock = lock
    this.#headers = headers
    this.#entries = new EntryReader({ fd, keyBytes: NAME_BYTES, readKey: readSortKey })
    this.#reserve = new FileReserve({ fd, usedBytes: () => this.#entries.usedBytes() })
  }

  /** Reads and checks the description of the store, or writes a new store's description. */
  async loadOrCreateDescription(): Promise<void> {
    const bytes = this.#db.getBinary(DESCRIPTION_NAME)
    if (bytes) {
      this.#description = parseDescription(this.#path, bytes)
      return
    }
    const { entryCount } = this.#db.getStats() as { entryCount: number }
    if (entryCount > 0) throw foreignFileError(this.#path)
    await this.#writeDescription(this.#description)
  }

  /** Rewrites the records of an older format. */
  async migrate(onMigration: LmdbStoreOptions['onMigration'] = () => {}): Promise<void> {
    const { format, migratingFrom: oldFormat = format, floors } = this.#description
    if (oldFormat === STORE_FORMAT) return
    this.#headers = undefined
    const recordsTotal = this.#db.getCount({ ...HEADERS }) // lmdb modifies the options
    let recordsDone = 0
    const report = (records: number) => {
      recordsDone += records
      onMigration({ from: oldFormat, to: STORE_FORMAT, recordsDone, recordsTotal })
    }
    try {
      await this.#writeDescription({ ...newDescription(floors), migratingFrom: oldFormat })
      report(0)
      const records = {
        oldHeaders: (afterRevision: Revision) => this.#oldHeaders(afterRevision),
        readValue: (revision: Revision) => this.read(revision),
        replace: (headers: readonly RecordHeader[]) => this.#replaceHeaders(headers),
      }
      await addChecksums(records, report)
      await this.#writeDescription(newDescription(floors))
      onMigration({ from: oldFormat, to: STORE_FORMAT, recordsDone: recordsTotal, recordsTotal })
    } catch (error) {
      const { message } = error as Error
      throw new Error(`Cannot migrate the store from format ${oldFormat} to ${STORE_FORMAT}: ${message}`, {
        cause: error,
      })
    }
  }

  scan(visit: Parameters<Medium['scan']>[0]): Floors {
    try {
      for (const { revision, header } of this.#headers ?? this.#storedHeaders()) {
        const damage = headerDamageOf(revision, header)
        if (damage) throw new Error(`record ${revision} (${JSON.stringify(header.key)}) is damaged: ${damage}`)
        visit(header as RecordHeader)
      }
    } catch (error) {
      throw new Error(`Cannot read ${this.#path}: ${(error as Error).message}`, { cause: error })
    }
    this.#headers = undefined // not needed again
    return this.#description.floors
  }

  whenPolled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  async write(batch: MediumBatch, { isBlocking = false }: WriteOptions = {}): Promise<void> {
    const bytes = newBytesMax(batch)
    if (bytes <= RESERVED_BYTES_MAX) this.#reserve.prepare(bytes)
    await this.#whenCommitted(() => (isBlocking ? this.#commitBlocking(batch) : this.#commit(batch)))
    this.check() // the batch is lost if it was written to a file that no longer has a path
  }

  /** Commits in the write thread of LMDB. */
  async #commit({ append, drop, floors }: MediumBatch): Promise<void> {
    this.#entries.refresh() // values are read meanwhile
    const valuePuts: Promise<boolean>[] = []
    const commit = this.#db.batch(() => {
      for (const record of append) {
        const { revision } = record
        this.#db.put([HEADER, revision], encodeHeader(record))
        if (!record.isDeleted) valuePuts.push(putLast(this.#db, [VALUE, revision], record.value))
      }
      for (const revision of drop) {
        this.#db.remove([HEADER, revision])
        this.#db.remove([VALUE, revision])
      }
      if (floors) this.#db.put(DESCRIPTION_NAME, encodeDescription(newDescription(floors)))
    })
    const [, ...appendResults] = await Promise.all([commit, ...valuePuts])
    assert(appendResults.every(Boolean), NOT_LAST)
  }

  /** Commits in this thread: the data pages and the meta page are synced when it returns. */
  #commitBlocking({ append, drop, floors }: MediumBatch): void {
    this.#db.transactionSync(() => {
      for (const record of append) {
        const { revision } = record
        this.#db.putSync([HEADER, revision], encodeHeader(record))
        if (!record.isDeleted) assert(putLastSync(this.#db, [VALUE, revision], record.value), NOT_LAST)
      }
      for (const revision of drop) {
        this.#db.removeSync([HEADER, revision])
        this.#db.removeSync([VALUE, revision])
      }
      if (floors) this.#db.putSync(DESCRIPTION_NAME, encodeDescription(newDescription(floors)))
    })
  }

  check(): void {
    for (const file of this.#files) {
      const change = changeOfFile(file)
      if (change) throw new MediumLostError({ path: file.path, change })
    }
  }

  verify(options: VerifyOptions): VerifiedSlice {
    const transaction = this.#db.useReadTransaction() // prevents LMDB from reusing pages of the newest state
    try {
      return verifyRecords({ fd: this.#fd, ...options })
    } finally {
      transaction.done()
    }
  }

  read(revision: Revision): Uint8Array | undefined {
    const name = sortKeyOf([VALUE, revision])
    try {
      return this.#entries.read(name)
    } catch (error) {
      if (error instanceof UnreadablePageError) throw new UnreadableValueError(error.message, { cause: error })
      throw error
    }
  }

  bytesOnDisk(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
  }

  async close(): Promise<void> {
    await this.#db.close()
    closeSync(this.#fd)
    await this.#lock.release()
  }

  *#storedHeaders(): Generator<NamedHeader> {
    for (const { key: name, value } of this.#db.getRange(HEADERS)) {
      yield { revision: name[1], header: value as DecodedHeader }
    }
  }

  *#oldHeaders(after: Revision): Generator<{ revision: Revision; header: OldHeader }> {
    for (const { key: name, value } of this.#db.getRange({ start: [HEADER, after + 1], end: HEADERS.end })) {
      const header = value as DecodedHeader
      if (isDamagedHeader(header)) throw new Error(`record ${name[1]} is damaged: ${header.damage}`)
      if (isOldHeader(header)) yield { revision: name[1], header }
    }
  }

  async #replaceHeaders(headers: readonly RecordHeader[]): Promise<void> {
    this.#entries.refresh()
    const commit = this.#db.batch(() => {
      for (const header of headers) this.#db.put([HEADER, header.revision], encodeHeader(header))
    })
    await this.#whenCommitted(() => commit)
  }

  async #writeDescription(description: Description): Promise<void> {
    this.#entries.refresh()
    const commit = this.#db.put(DESCRIPTION_NAME, encodeDescription(description))
    await this.#whenCommitted(() => commit)
    this.#description = description
  }

  async #whenCommitted(commit: () => unknown): Promise<void> {
    try {
      await commit()
    } catch (error) {
      throw await this.#explain(error)
    } finally {
      this.#entries.expire()
    }
  }

  async #explain(error: unknown): Promise<Error> {
    const cause = await explainCommitError(error)
    const reason = REJECTION_REASONS.get(cause.code as unknown as number)
    if (!reason || !this.#isUsable()) return new Error(`Cannot write ${this.#path}: ${cause.message}`, { cause })
    const space = await describeDiskSpace(this.#path).catch(() => undefined)
    return new AppendRejectedError(`${this.#path}: ${reason}${space ? `; ${space}` : ''}`, { cause })
  }

  /** Returns false if LMDB rejects all further transactions. The outcome of the last one is then unknown. */
  #isUsable(): boolean {
    try {
      this.#db.transactionSync(() => {})
      return true
    } catch {
      return false
    }
  }
}

/** Returns by how many bytes a commit of the batch usually extends the file at most. */
const newBytesMax = ({ append }: MediumBatch): number =>
  append.reduce((bytes, { value }) => bytes + value.length + PAGE_BYTES, PAGES_PER_COMMIT * PAGE_BYTES)

/**
 * Puts a value after all others (MDB_APPEND), so that LMDB fills pages instead of splitting them. Resolves with false if the
 * name does not sort last.
 */
function putLast(db: Db, name: RecordName, value: Uint8Array): Promise<boolean> {
  const options = { append: true } as unknown as number // lmdb declares these options only for putSync
  return db.put(name, value, options)
}

/** Like putLast, in a transaction of this thread. */
const putLastSync = (db: Db, name: RecordName, value: Uint8Array): boolean =>
  db.putSync(name, value, { append: true }) as unknown as boolean // lmdb declares no result

/** Returns the cause of a commit error, which lmdb provides as the `commitError` promise of a generic error. */
async function explainCommitError(error: unknown): Promise<NodeJS.ErrnoException> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error as Error
  return commitError.then(
    () => error as Error,
    (cause) => cause,
  )
}
