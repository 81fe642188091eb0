// A store in a directory, on LMDB: what it has acknowledged survives the process and the power.
// This file is only the medium; everything a store does with it is in revisioned-store.ts.
//
// One tree holds everything, in this order: a description of the store, the headers of all records, their values.
// Separate trees would cost every commit several pages more.

import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { chmod, mkdir, open as openFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { open as openLmdb, type RootDatabase } from 'lmdb'
import type { Clock } from '../base/clock.ts'
import { type DirectoryLock, lockDirectory } from './directory-lock.ts'
import { STORE_FILE } from './lmdb-copy.ts'
import { checkLmdbFile } from './lmdb-file.ts'
import { AppendRefusedError, type Floors, type Medium, type MediumBatch, NO_FLOORS } from './medium.ts'
import {
  DESCRIPTION,
  decodeHeader,
  encodeHeader,
  HEADER,
  type HeaderFields,
  type RecordName,
  readName,
  VALUE,
  writeName,
} from './record-codec.ts'
import { openRevisionedStore } from './revisioned-store.ts'
import type { HistoryOptions, Revision, Store } from './store.ts'

const STORE_FORMAT = 2
const DESCRIPTION_NAME: RecordName = [DESCRIPTION, 0]
const HEADERS: { start: RecordName; end: RecordName } = { start: [HEADER, 0], end: [VALUE, 0] }

/** What is put is bytes; what a range gives back is headers, decoded in place without copying each one first. */
type Db = RootDatabase<Uint8Array | HeaderFields, RecordName>

/** Errors of a commit after which LMDB has kept nothing and goes on working: the disk or a quota is full. */
const REFUSALS: ReadonlyMap<number, string> = new Map([
  [28, 'the disk is full (ENOSPC)'],
  [122, 'the disk quota is used up (EDQUOT)'],
  [27, 'the file may not grow any further (EFBIG)'],
  // LMDB's word for half a write; the page that makes a commit valid is written last, so none of it is kept.
  [5, 'a write was cut short: the disk is full, or failing (EIO)'],
  [12, 'there is not enough memory (ENOMEM)'],
  [-30792, 'the store has reached its largest size (MDB_MAP_FULL)'],
])

export interface LmdbStoreOptions {
  /** Made if it does not exist. One process at a time may use it. */
  readonly dir: string
  readonly clock: Clock
  readonly history?: HistoryOptions
}

export async function openLmdbStore({ dir, clock, history }: LmdbStoreOptions): Promise<Store> {
  const medium = await openLmdbMedium(dir)
  try {
    return await openRevisionedStore({ medium, clock, history })
  } catch (error) {
    await medium.close()
    throw error
  }
}

async function openLmdbMedium(dir: string): Promise<Medium> {
  const topmostMade = await mkdir(dir, { recursive: true, mode: 0o700 })
  const lock = await lockDirectory(dir)
  const path = join(dir, STORE_FILE)
  let db: Db | undefined
  try {
    await checkLmdbFile(path)
    db = openLmdb({
      path,
      noSubdir: true,
      keyEncoder: { writeKey: writeName, readKey: readName },
      encoder: { encode: (bytes: Uint8Array) => bytes, decode: decodeHeader },
      maxDbs: 1,
      eventTurnBatching: false, // every write() is a batch of its own; one around it would fail without being heard
      // A commit then is: data, fdatasync, and the page that makes it valid through a file opened with O_DSYNC. The
      // promise settles after that. Overlapping it with the next commit gains nothing, as there is one at a time.
      overlappingSync: false,
    })
    await chmod(path, 0o600) // there are secrets in it
    const medium = new LmdbMedium({ db, path, lock })
    await medium.describe()
    await syncDirectory(dir) // or a power cut could take the file itself
    if (topmostMade) await syncDirectory(dirname(topmostMade))
    return medium
  } catch (error) {
    await db?.close()
    await lock.release()
    throw error
  }
}

interface Description {
  readonly store: 'stowage'
  readonly format: number
  readonly floors: Floors
}

class LmdbMedium implements Medium {
  readonly #db: Db
  readonly #path: string
  readonly #lock: DirectoryLock
  #floors: Floors = NO_FLOORS

  constructor({ db, path, lock }: { db: Db; path: string; lock: DirectoryLock }) {
    this.#db = db
    this.#path = path
    this.#lock = lock
  }

  /** Reads what the store says about itself; a new one is given its description. */
  async describe(): Promise<void> {
    const bytes = this.#db.getBinary(DESCRIPTION_NAME)
    if (bytes) {
      const description = parseDescription(this.#path, bytes)
      this.#floors = description.floors
      return
    }
    const { entryCount } = this.#db.getStats() as { entryCount: number }
    if (entryCount > 0) throw foreign(this.#path)
    await this.#db.put(DESCRIPTION_NAME, encodeDescription(NO_FLOORS))
  }

  scan(visit: Parameters<Medium['scan']>[0]): Floors {
    try {
      for (const { key: name, value } of this.#db.getRange(HEADERS)) {
        const [, revision] = name
        const { key, createRevision, expiresAtMs, deleted } = value as HeaderFields
        visit({ key, revision, createRevision, expiresAtMs, deleted })
      }
    } catch (error) {
      throw new Error(`Cannot read ${this.#path}: ${(error as Error).message}`, { cause: error })
    }
    return this.#floors
  }

  async write({ append, drop, floors }: MediumBatch): Promise<void> {
    const stored: Promise<boolean>[] = []
    const committed = this.#db.batch(() => {
      for (const record of append) {
        const { revision } = record
        this.#db.put([HEADER, revision], encodeHeader(record))
        if (!record.deleted) stored.push(putLast(this.#db, [VALUE, revision], record.value))
      }
      for (const revision of drop) {
        this.#db.remove([HEADER, revision])
        this.#db.remove([VALUE, revision])
      }
      if (floors) this.#db.put(DESCRIPTION_NAME, encodeDescription(floors))
    })
    try {
      const [, ...isStored] = await Promise.all([committed, ...stored])
      assert(isStored.every(Boolean), 'values are appended in order')
    } catch (error) {
      throw await this.#explain(error)
    }
  }

  read(revision: Revision): Uint8Array {
    const lent = this.#db.getBinaryFast([VALUE, revision]) // until the next read
    if (!lent) throw new Error(`record ${revision} is missing from ${this.#path}`)
    const value = Buffer.allocUnsafe(lent.length)
    value.set(new Uint8Array(lent.buffer, lent.byteOffset, lent.length))
    return value
  }

  bytesOnDisk(): number {
    return statSync(this.#path).size
  }

  async close(): Promise<void> {
    await this.#db.close()
    await this.#lock.release()
  }

  async #explain(error: unknown): Promise<Error> {
    const cause = await commitErrorOf(error)
    const refusal = REFUSALS.get(cause.code as unknown as number)
    if (!refusal || !this.#isUsable()) return new Error(`Cannot write ${this.#path}: ${cause.message}`, { cause })
    return new AppendRefusedError(`${this.#path}: ${refusal}`, { cause })
  }

  /** After some errors LMDB refuses every further transaction; then it also cannot tell what became of the last. */
  #isUsable(): boolean {
    try {
      this.#db.transactionSync(() => {})
      return true
    } catch {
      return false
    }
  }
}

/**
 * Puts behind everything there is. LMDB then fills its pages to the end instead of splitting them in half, which
 * makes the file half as large. Resolves with false if the name was not the last one.
 */
function putLast(db: Db, name: RecordName, value: Uint8Array): Promise<boolean> {
  const options = { append: true } as unknown as number // lmdb's types know these options only for putSync
  return db.put(name, value, options)
}

/** lmdb rejects with a general error, and says later, on a promise of that error, what it was. */
async function commitErrorOf(error: unknown): Promise<NodeJS.ErrnoException> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error as Error
  return commitError.then(
    () => error as Error,
    (cause) => cause,
  )
}

function encodeDescription(floors: Floors): Buffer {
  const description: Description = { store: 'stowage', format: STORE_FORMAT, floors }
  return Buffer.from(JSON.stringify(description))
}

function parseDescription(path: string, bytes: Buffer): Description {
  let description: Partial<Description> = {}
  try {
    description = JSON.parse(bytes.toString())
  } catch {}
  if (description?.store !== 'stowage') {
    throw foreign(path)
  }
  if (description.format !== STORE_FORMAT) {
    throw new Error(
      `${path} is a store of format ${description.format}; this version of Stowage reads format ${STORE_FORMAT}.`,
    )
  }
  return description as Description
}

const foreign = (path: string) => new Error(`${path} is not a Stowage store: it is an LMDB file of another program.`)

async function syncDirectory(dir: string): Promise<void> {
  const handle = await openFile(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
