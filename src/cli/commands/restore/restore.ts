// Runs `stowage restore`: restores the store from archives or from the directory of a backup, and writes the files of the backup
// that the data directory lacks.
import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { ensurePrivateDirectory, writePrivateFile } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type ArchiveSource, restoreCopy, restoreStore } from '../../../store/backup/index.ts'
import type { RecordDamage } from '../../../store/index.ts'
import { type ArchiveReader, createArchiveReader } from '../backup/archive-reader.ts'
import { DATA_FILES, findFiles } from '../backup/files.ts'

export interface RestoreBackupOptions {
  readonly dataDir: string
  /** Default: in the data directory. */
  readonly pkiDir?: string
  /** Paths of archives, or of one directory. `-` is standard input. */
  readonly backups: readonly string[]
  readonly clock: Clock
}

export interface RestoredBackup {
  readonly dataDir: string
  /** The store's revision. Not set for a directory. */
  readonly revision?: number
  /** Whether the restore continued one that was interrupted. */
  readonly isResumed: boolean
  readonly filesWritten: readonly string[]
  readonly filesKept: readonly string[]
  /** Records of the backup that do not match their checksums. */
  readonly damagedRecords: readonly RecordDamage[]
}

export async function restoreBackup(options: RestoreBackupOptions): Promise<RestoredBackup> {
  const { dataDir, pkiDir, backups, clock } = options
  const files = new RestoredFiles(dataDir, pkiDir ?? join(dataDir, 'pki'))
  const dir = join(dataDir, 'store')
  const isDirectory = await Promise.all(backups.map(isBackupDirectory))
  if (isDirectory.includes(true)) {
    if (backups.length > 1) throw new UsageError('A backup that is a directory cannot be combined with others.')
    const backupDir = resolve(backups[0]!)
    const { files: backupFiles } = await findFiles({ dataDir: backupDir, includesEncryptionKey: true })
    const writeOtherFiles = async () => {
      for (const { name, path } of backupFiles) await files.write(name, await readFile(path))
    }
    const { damagedRecords } = await restoreCopy({ sourceDir: join(backupDir, 'store'), dir, writeOtherFiles })
    return { dataDir, isResumed: false, filesWritten: files.writtenNames, filesKept: files.keptNames, damagedRecords }
  }
  const reader = await createArchiveReader(backups, { title: 'Restoring', clock })
  const { revision, isResumed, damagedRecords } = await restoreStore({
    dir,
    archives: backups.map((path) => sourceOf(path, reader)),
    writeFile: (name, content) => files.write(name, content),
  }).finally(reader.finish)
  return {
    dataDir,
    revision,
    isResumed,
    filesWritten: files.writtenNames,
    filesKept: files.keptNames,
    damagedRecords,
  }
}

async function isBackupDirectory(path: string): Promise<boolean> {
  if (path === '-') return false
  const stats = await stat(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  return stats.isDirectory()
}

const sourceOf = (path: string, reader: ArchiveReader): ArchiveSource => ({
  name: path === '-' ? 'standard input' : path,
  chunks: reader.read(path),
})

class RestoredFiles {
  readonly writtenNames: string[] = []
  readonly keptNames: string[] = []
  readonly #dataDir: string
  readonly #pkiDir: string

  constructor(dataDir: string, pkiDir: string) {
    this.#dataDir = dataDir
    this.#pkiDir = pkiDir
  }

  /** Writes a file unless it exists. */
  async write(name: string, content: Uint8Array): Promise<void> {
    const path = this.#pathOf(name)
    if (await stat(path).catch(() => undefined)) {
      this.keptNames.push(name)
      return
    }
    await ensurePrivateDirectory(dirname(path))
    await writePrivateFile(path, content)
    this.writtenNames.push(name)
  }

  /** Throws for names that a backup does not contain, such as `../x`: an archive may come from anywhere. */
  #pathOf(name: string): string {
    if (DATA_FILES.includes(name)) return join(this.#dataDir, name)
    const [, pkiName] = /^pki\/([\w.-]+)$/.exec(name) ?? []
    if (!pkiName || /^\.+$/.test(pkiName))
      throw new Error(`The backup contains a file with the unexpected name "${name}".`)
    return join(this.#pkiDir, pkiName)
  }
}
