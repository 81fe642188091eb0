// Runs `stowage backup --to`: copies a consistent snapshot of an embedded store, and the other files that a server needs, such as
// the credentials, even while the server runs. It does not copy the contents of volumes. A backup has the layout of a data
// directory, so that a server can start with it.
import { chmod, copyFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ensureDirectory, ensurePrivateDirectory, syncDirectory } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { copyLmdbStore, type RecordDamage, STORE_FILE } from '../../../store/index.ts'
import { type FileOptions, findFiles, listNames } from './files.ts'

export interface BackupOptions extends FileOptions {
  /** The backup's directory. It must be empty or not exist. */
  readonly targetDir: string
}

export interface Backup {
  readonly to: string
  readonly storeBytes: number
  readonly files: readonly string[]
  /** The path of the file with the encryption key, if there is one and it is not part of the backup. */
  readonly keyFile?: string
  /** The records that do not match their checksums. The backup contains them unchanged. */
  readonly damagedRecords: readonly RecordDamage[]
}

/** Writes the backup as NAME.partial and renames it when it is complete. */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { dataDir } = options
  const targetDir = resolve(options.targetDir)
  const backupFiles = await findFiles(options)
  if (`${targetDir}/`.startsWith(`${resolve(dataDir)}/`)) {
    throw new UsageError(`--to ${targetDir}: the directory is inside the data directory. Choose another.`)
  }
  if ((await listNames(targetDir)).length > 0)
    throw new UsageError(`--to ${targetDir}: the directory is not empty. Choose a new one.`)

  const partialDir = join(dirname(targetDir), `${basename(targetDir)}.partial`)
  try {
    await ensureDirectory(dirname(targetDir))
    await rm(partialDir, { recursive: true, force: true })
    await ensurePrivateDirectory(partialDir)
  } catch (error) {
    const { message } = error as Error
    throw new UsageError(`--to ${targetDir} cannot be created: ${message}. Choose a writable directory.`)
  }
  const copy = await copyLmdbStore({ sourceDir: join(dataDir, 'store'), targetDir: join(partialDir, 'store') })
  await ensurePrivateDirectory(join(partialDir, 'pki'))
  for (const { name, path } of backupFiles.files) {
    await copyFile(path, join(partialDir, name))
    await chmod(join(partialDir, name), 0o600)
  }
  await syncDirectory(join(partialDir, 'pki'))
  await syncDirectory(partialDir)
  await rename(partialDir, targetDir)
  await syncDirectory(dirname(targetDir))
  const files = [join('store', STORE_FILE), ...backupFiles.files.map(({ name }) => name)]
  const backup = { to: targetDir, storeBytes: copy.bytes, files, damagedRecords: copy.damagedRecords }
  return backupFiles.keyFile ? { ...backup, keyFile: backupFiles.keyFile } : backup
}
