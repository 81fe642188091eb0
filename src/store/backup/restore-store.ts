// Creates an LMDB store from a full backup archive and the incremental ones that continue it. The store is built in a file with
// another name, which is renamed when it is complete and verified. Every commit records what was applied. An interrupted
// restore that runs again with the same archives continues after its last commit.
import { chmod, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describeDiskSpace, requireWritableSpace } from '../../base/disk-space.ts'
import { ensureDirectory, syncDirectory } from '../../base/files.ts'
import { UsageError } from '../../base/usage-error.ts'
import { lockDirectory } from '../files/directory-lock.ts'
import { STORE_FILE } from '../files/lmdb-copy.ts'
import { checkLmdbCopy, checkLmdbFile } from '../files/lmdb-file.ts'
import { ensureLockFile, lockFileOf } from '../files/lmdb-lock-file.ts'
import { HEADER, VALUE } from '../records/record-codec.ts'
import type { RecordDamage } from '../records/record-inspector.ts'
import type { Frame, KeptRevisions, Manifest, StoreEntry } from './archive.ts'
import { checkSequence } from './archive-sequence.ts'
import { encodeName, openRawDb, PROGRESS_NAME, type RawDb, revisionOf } from './raw-entries.ts'
import { ArchiveError, type ArchiveSource, readArchive } from './read-archive.ts'

const OPEN_BYTES_MIN = 2 ** 20 // LMDB crashes if the disk becomes full while it opens a file
const COMMIT_BYTES = 8 * 1024 * 1024 // entries of this size are committed together

export interface RestoreOptions {
  /** The directory of the store, which is created if it does not exist. It must not contain a store. */
  readonly dir: string
  /** The full archive, then the incremental ones in order. */
  readonly archives: readonly ArchiveSource[]
  /** Called with the last content of each file in the archives, after the store is built and before it is moved to its place. */
  readonly writeFile?: (name: string, content: Buffer) => Promise<void>
  /** Called after every commit. */
  readonly onCommit?: () => Promise<void> | void
}

export interface RestoreResult {
  readonly revision: number
  readonly storeEntries: number
  /** Whether the restore continued one that was interrupted. */
  readonly isResumed: boolean
  /** Records that were already damaged when the backup was created. */
  readonly damagedRecords: readonly RecordDamage[]
}

/** The archives that were applied, and how many frames of the last one. */
interface Progress {
  readonly ids: readonly string[]
  readonly frames: number
}

/** The name of the file in which a store is built. */
export const RESTORING_FILE = `${STORE_FILE}.restoring`

export async function restoreStore({ dir, archives, writeFile, onCommit }: RestoreOptions): Promise<RestoreResult> {
  await ensureDirectory(dir)
  const lock = await lockDirectory(dir) // prevents a server from starting on the directory
  try {
    const target = join(dir, STORE_FILE)
    await requireNoStore(dir)
    const path = join(dir, RESTORING_FILE)
    await checkLmdbFile(path).catch(() => rm(path)) // a crash during its creation leaves an invalid file
    await requireWritableSpace(dir, OPEN_BYTES_MIN)
    await ensureLockFile(path)
    const db = openRawDb(path, { isReadOnly: false })
    const restore = new StoreRestore(db, onCommit)
    let appliedArchives: AppliedArchives
    let canContinue = true
    try {
      await chmod(path, 0o600)
      appliedArchives = await restore.apply(archives)
    } catch (error) {
      canContinue = restore.hasProgress
      throw await describeError(error, path)
    } finally {
      await db.close()
      if (!canContinue) await removeFiles(path)
    }
    const damagedRecords = await checkLmdbCopy(path)
    for (const [name, content] of restore.files) await writeFile?.(name, content)
    await rename(path, target)
    await removeFiles(path)
    await syncDirectory(dir)
    return { ...appliedArchives, damagedRecords }
  } finally {
    await lock.release()
  }
}

/** Removes the file, if it exists, and its table of readers. */
async function removeFiles(path: string): Promise<void> {
  for (const file of [path, lockFileOf(path)]) await rm(file, { force: true })
}

/** Adds the file and the available space to an LMDB error, which has a numeric code. Returns other errors unchanged. */
async function describeError(error: unknown, path: string): Promise<unknown> {
  const { code, message } = error as { code?: unknown; message?: string }
  if (typeof code !== 'number') return error
  return new Error(
    `Cannot write ${path}: ${message}; ${await describeDiskSpace(path)}. Run the restore again when it can be written.`,
    { cause: error },
  )
}

/** Throws a UsageError if the directory contains a store. */
export async function requireNoStore(dir: string): Promise<void> {
  const path = join(dir, STORE_FILE)
  const isStored = await stat(path).then(
    () => true,
    () => false,
  )
  if (isStored) throw new UsageError(`${path} exists: a restore does not overwrite a store. Move it away first.`)
}

class StoreRestore {
  readonly files = new Map<string, Buffer>()
  readonly #db: RawDb
  readonly #onCommit: RestoreOptions['onCommit']
  #progress: Progress = { ids: [], frames: 0 }
  #pendingWrites: (() => void)[] = []
  #pendingBytes = 0

  constructor(db: RawDb, onCommit: RestoreOptions['onCommit']) {
    this.#db = db
    this.#onCommit = onCommit
  }

  /** Whether a commit has recorded what was applied. */
  get hasProgress(): boolean {
    return this.#db.get(PROGRESS_NAME) !== undefined
  }

  async apply(archives: readonly ArchiveSource[]): Promise<AppliedArchives> {
    const earlierProgress = this.#loadProgress()
    let previousManifest: Manifest | undefined
    let storeEntries = 0
    for (const [index, source] of archives.entries()) {
      const { manifest, end } = await this.#applyArchive({
        source,
        index,
        earlier: earlierProgress,
        previous: previousManifest,
      })
      previousManifest = manifest
      storeEntries = end
    }
    if (!previousManifest) throw new Error('There is no archive to restore.')
    if (earlierProgress.ids.length > archives.length) throw differentArchivesError()
    const { entryCount } = this.#db.getStats() as { entryCount: number }
    const restoredEntries = entryCount - 1 // without the progress
    if (restoredEntries !== storeEntries) {
      throw new ArchiveError(`The restored store has ${restoredEntries} entries instead of ${storeEntries}.`)
    }
    this.#db.transactionSync(() => this.#db.removeSync(PROGRESS_NAME))
    return { revision: previousManifest.revision, storeEntries, isResumed: earlierProgress.ids.length > 0 }
  }

  /** Reads and verifies all frames, and applies those that are not applied yet. */
  async #applyArchive({ source, index, earlier, previous }: ArchiveStep): Promise<{ manifest: Manifest; end: number }> {
    let manifest: Manifest | undefined
    let frames = 0
    for await (const frame of readArchive(source)) {
      if (frame.type === 'manifest') {
        manifest = frame.manifest
        checkSequence(source.name, manifest, previous)
        const appliedId = earlier.ids[index]
        if (appliedId !== undefined && appliedId !== manifest.id) throw differentArchivesError()
        if (appliedId === undefined) this.#progress = { ids: [...this.#progress.ids, manifest.id], frames: 0 }
        continue
      }
      if (!manifest) throw new ArchiveError(`${source.name} is damaged: it does not begin with a manifest.`)
      if (frame.type === 'end') {
        await this.#commit()
        return { manifest, end: frame.end.storeEntries }
      }
      frames++
      if (frame.type === 'file') this.files.set(frame.name, frame.content)
      const isApplied = index < earlier.ids.length - 1 || (index === earlier.ids.length - 1 && frames <= earlier.frames)
      if (isApplied) continue
      this.#add(frame, manifest)
      this.#progress = { ...this.#progress, frames }
      if (this.#pendingBytes >= COMMIT_BYTES) await this.#commit()
    }
    throw new ArchiveError(`${source.name} is damaged: it has no end.`)
  }

  #add(frame: Frame, { since }: Manifest): void {
    if (frame.type === 'entries') {
      this.#pendingWrites.push(() => {
        for (const { name, value } of frame.entries) this.#put({ name, value }, since === undefined)
      })
      this.#pendingBytes += frame.entries.reduce((sum, { value }) => sum + value.length, 0)
    } else if (frame.type === 'kept') {
      this.#pendingWrites.push(() => this.#dropUnkept(frame.kept))
      this.#pendingBytes += frame.kept.revisions.length * 100
    }
  }

  /** Puts an entry. `isAppended` means that it sorts after all others, so that LMDB fills its pages (MDB_APPEND). */
  #put({ name, value }: StoreEntry, isAppended: boolean): void {
    const isPut: unknown = this.#db.putSync(Buffer.from(name), Buffer.from(value), isAppended ? { append: true } : {})
    if (isPut === false) throw new ArchiveError('The entries of a full archive are not in order.')
  }

  /** Deletes the records in the range that the store no longer had. Throws if a record that the store had is missing. */
  #dropUnkept({ afterRevision, upToRevision, revisions }: KeptRevisions): void {
    const missingRevisions = new Set(revisions)
    const range = { start: encodeName(HEADER, afterRevision + 1), end: encodeName(HEADER, upToRevision + 1) }
    const presentRevisions = [...this.#db.getKeys(range)].map(revisionOf)
    for (const revision of presentRevisions) {
      if (missingRevisions.delete(revision)) continue
      this.#db.removeSync(encodeName(HEADER, revision))
      this.#db.removeSync(encodeName(VALUE, revision))
    }
    if (missingRevisions.size > 0) {
      throw new ArchiveError('An incremental archive does not belong to the archive before it: records are missing.')
    }
  }

  async #commit(): Promise<void> {
    const pendingWrites = this.#pendingWrites
    this.#pendingWrites = []
    this.#pendingBytes = 0
    this.#db.transactionSync(() => {
      for (const apply of pendingWrites) apply()
      this.#db.putSync(PROGRESS_NAME, Buffer.from(JSON.stringify(this.#progress)))
    })
    await this.#onCommit?.()
  }

  #loadProgress(): Progress {
    const bytes = this.#db.get(PROGRESS_NAME)
    if (bytes) this.#progress = JSON.parse(bytes.toString())
    else this.#db.clearSync() // a crash between the last commit and the rename leaves a store without the entry
    return this.#progress
  }
}

type AppliedArchives = Omit<RestoreResult, 'damagedRecords'>

interface ArchiveStep {
  readonly source: ArchiveSource
  readonly index: number
  /** The progress of the interrupted restore that this one continues. */
  readonly earlier: Progress
  readonly previous: Manifest | undefined
}

const differentArchivesError = () =>
  new Error(
    `An interrupted restore used other archives. Run it again with those, or delete ${RESTORING_FILE} to start over.`,
  )
