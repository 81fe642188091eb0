// Runs `stowage backup`: copies a consistent snapshot of an embedded store and the credentials, also while the server runs.
// Volume contents are not part of it. A backup has the layout of a data directory, so that a server can start on it.
import { chmod, copyFile, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ensureDirectory, ensurePrivateDirectory, syncDirectory } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { copyLmdbStore, STORE_FILE } from '../../../store/index.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** Default: in the data directory. */
  readonly pkiDir?: string
  /** Created if it is missing; must be empty otherwise. */
  readonly to: string
}

export interface Backup {
  readonly to: string
  readonly storeBytes: number
  readonly files: readonly string[]
}

/** Copied if present, beside the store and the credentials. */
const FILES = ['admin.kubeconfig', 'volumes.id']

/** The backup is written as NAME.partial and renamed when it is complete. */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { dataDir, pkiDir = join(dataDir, 'pki') } = options
  const to = resolve(options.to)
  const names = await namesIn(dataDir)
  if (!(await namesIn(join(dataDir, 'store'))).includes(STORE_FILE)) {
    throw new UsageError(
      `There is no embedded store in ${dataDir}: name the data directory of the server with --data-dir. ` +
        'Back up objects in etcd with the tools of etcd.',
    )
  }
  if (`${to}/`.startsWith(`${resolve(dataDir)}/`)) {
    throw new UsageError(`--to ${to}: it is inside the directory that is backed up. Name another.`)
  }
  if ((await namesIn(to)).length > 0) throw new UsageError(`--to ${to}: it is not empty. Name a new directory.`)

  const partial = join(dirname(to), `${basename(to)}.partial`)
  try {
    await ensureDirectory(dirname(to))
    await rm(partial, { recursive: true, force: true })
    await ensurePrivateDirectory(partial)
  } catch (error) {
    const { message } = error as Error
    throw new UsageError(`--to ${to} cannot be created: ${message}. Name a directory that can be written to.`)
  }
  const storeBytes = await copyLmdbStore({ from: join(dataDir, 'store'), to: join(partial, 'store') })
  const files: string[] = []
  const keep = async (from: string, name: string) => {
    await copyFile(from, join(partial, name))
    await chmod(join(partial, name), 0o600)
    files.push(name)
  }
  for (const name of FILES.filter((name) => names.includes(name))) await keep(join(dataDir, name), name)
  await ensurePrivateDirectory(join(partial, 'pki'))
  // Files being replaced are written as *.tmp first.
  const credentials = (await namesIn(pkiDir)).filter((name) => !name.endsWith('.tmp'))
  for (const name of credentials) await keep(join(pkiDir, name), join('pki', name))
  await syncDirectory(join(partial, 'pki'))
  await syncDirectory(partial)
  await rename(partial, to)
  await syncDirectory(dirname(to))
  return { to, storeBytes, files: [join('store', STORE_FILE), ...files] }
}

const namesIn = (dir: string): Promise<string[]> =>
  readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw new Error(`Cannot read ${dir}: ${error.message}`, { cause: error })
  })
