// Runs `stowage backup`: copies a consistent snapshot of an embedded store and the credentials, even while the server runs.
// It does not copy the contents of volumes. A backup has the layout of a data directory, so that a server can start with it.
import { chmod, copyFile, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ensureDirectory, ensurePrivateDirectory, syncDirectory } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { ENCRYPTION_FILE } from '../../../processes/server/encryption.ts'
import { copyLmdbStore, STORE_FILE } from '../../../store/index.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** Default: in the data directory. */
  readonly pkiDir?: string
  /** The directory of the backup. It must not exist, or be empty. */
  readonly to: string
  /** Whether to copy the key that encrypts Secrets. Default: false, so that the backup alone does not reveal them. */
  readonly hasEncryptionKey?: boolean
}

export interface Backup {
  readonly to: string
  readonly storeBytes: number
  readonly files: readonly string[]
  /** The file with the key that is not part of the backup, if there is one. */
  readonly keyFile?: string
}

/** Files that are copied if they exist, in addition to the store and the credentials. */
const DATA_FILES = ['admin.kubeconfig', 'volumes.id']

/** Writes the backup as NAME.partial and renames it when it is complete. */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { dataDir, pkiDir = join(dataDir, 'pki') } = options
  const to = resolve(options.to)
  const names = await listNames(dataDir)
  if (!(await listNames(join(dataDir, 'store'))).includes(STORE_FILE)) {
    throw new UsageError(
      `There is no embedded store in ${dataDir}: set --data-dir to the data directory of the server. ` +
        'Back up objects in etcd with the tools of etcd.',
    )
  }
  if (`${to}/`.startsWith(`${resolve(dataDir)}/`)) {
    throw new UsageError(`--to ${to}: the directory is inside the data directory. Choose another.`)
  }
  if ((await listNames(to)).length > 0)
    throw new UsageError(`--to ${to}: the directory is not empty. Choose a new one.`)

  const partialDir = join(dirname(to), `${basename(to)}.partial`)
  try {
    await ensureDirectory(dirname(to))
    await rm(partialDir, { recursive: true, force: true })
    await ensurePrivateDirectory(partialDir)
  } catch (error) {
    const { message } = error as Error
    throw new UsageError(`--to ${to} cannot be created: ${message}. Choose a writable directory.`)
  }
  const storeBytes = await copyLmdbStore({ from: join(dataDir, 'store'), to: join(partialDir, 'store') })
  const files: string[] = []
  const copy = async (from: string, name: string) => {
    await copyFile(from, join(partialDir, name))
    await chmod(join(partialDir, name), 0o600)
    files.push(name)
  }
  for (const name of DATA_FILES.filter((name) => names.includes(name))) await copy(join(dataDir, name), name)
  await ensurePrivateDirectory(join(partialDir, 'pki'))
  // Skip temporary files: a file that is being replaced is written as *.tmp first.
  const credentials = (await listNames(pkiDir)).filter((name) => !name.endsWith('.tmp'))
  const omitsKey = credentials.includes(ENCRYPTION_FILE) && !options.hasEncryptionKey
  for (const name of credentials) {
    if (name !== ENCRYPTION_FILE || !omitsKey) await copy(join(pkiDir, name), join('pki', name))
  }
  await syncDirectory(join(partialDir, 'pki'))
  await syncDirectory(partialDir)
  await rename(partialDir, to)
  await syncDirectory(dirname(to))
  const backup = { to, storeBytes, files: [join('store', STORE_FILE), ...files] }
  return omitsKey ? { ...backup, keyFile: join(pkiDir, ENCRYPTION_FILE) } : backup
}

const listNames = (dir: string): Promise<string[]> =>
  readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw new Error(`Cannot read ${dir}: ${error.message}`, { cause: error })
  })
