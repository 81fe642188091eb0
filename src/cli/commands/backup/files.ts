// Lists the files that a backup contains in addition to the store: the credentials and the files of the data directory that a
// server needs.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../../../base/usage-error.ts'
import { ENCRYPTION_FILE } from '../../../processes/server/encryption.ts'
import { STORE_FILE } from '../../../store/index.ts'

export interface FileOptions {
  readonly dataDir: string
  /** Default: in the data directory. */
  readonly pkiDir?: string
  /** Whether to include the key that encrypts Secrets. Default: false, so that the backup alone does not reveal them. */
  readonly includesEncryptionKey?: boolean
}

export interface BackupFiles {
  /** Names in the backup, such as `pki/ca.crt`, with the paths of the files. */
  readonly files: readonly { readonly name: string; readonly path: string }[]
  /** The file with the key that is not part of the backup, if there is one. */
  readonly keyFile?: string
}

/** Files of the data directory that are part of a backup if they exist. */
export const DATA_FILES: readonly string[] = ['admin.kubeconfig', 'volumes.id']

/** Throws a UsageError if the data directory has no embedded store. */
export async function findFiles({
  dataDir,
  pkiDir = join(dataDir, 'pki'),
  includesEncryptionKey,
}: FileOptions): Promise<BackupFiles> {
  if (!(await listNames(join(dataDir, 'store'))).includes(STORE_FILE)) {
    throw new UsageError(
      `There is no embedded store in ${dataDir}: set --data-dir to the data directory of the server. ` +
        'Back up objects in etcd with the tools of etcd.',
    )
  }
  const names = await listNames(dataDir)
  const dataFiles = DATA_FILES.filter((name) => names.includes(name)).map((name) => ({
    name,
    path: join(dataDir, name),
  }))
  // Skip temporary files: a file that is being replaced is written as *.tmp first.
  const credentials = (await listNames(pkiDir)).filter((name) => !name.endsWith('.tmp'))
  const omitsKey = credentials.includes(ENCRYPTION_FILE) && !includesEncryptionKey
  const pkiFiles = credentials
    .filter((name) => name !== ENCRYPTION_FILE || !omitsKey)
    .map((name) => ({ name: join('pki', name), path: join(pkiDir, name) }))
  const files = [...dataFiles, ...pkiFiles]
  return omitsKey ? { files, keyFile: join(pkiDir, ENCRYPTION_FILE) } : { files }
}

/** Returns the names in a directory, or none if it does not exist. */
export const listNames = (dir: string): Promise<string[]> =>
  readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw new Error(`Cannot read ${dir}: ${error.message}`, { cause: error })
  })
