// `stowage backup`: what a server on an embedded store keeps, as of one moment, also while it runs: objects and
// credentials. What volumes hold is not in it. A backup has the layout of a data directory, so a server starts on it.
import { chmod, copyFile, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ensureDirectory, ensurePrivateDirectory, syncDirectory } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { copyLmdbStore, STORE_FILE } from '../../../store/index.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** Where the credentials are, if not in the data directory. */
  readonly pkiDir?: string
  /** Made by this; one that is there must be empty. */
  readonly to: string
}

export interface Backup {
  readonly to: string
  readonly storeBytes: number
  readonly files: readonly string[]
}

/** Beside the store and the credentials: which of them there are depends on how the server was started. */
const FILES = ['admin.kubeconfig', 'volumes.id']

/** A backup under its name is whole: until then it is called NAME.partial. */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { dataDir, pkiDir = join(dataDir, 'pki') } = options
  const to = resolve(options.to)
  const names = await namesIn(dataDir)
  if (!(await namesIn(join(dataDir, 'store'))).includes(STORE_FILE)) {
    throw new UsageError(
      `There is no embedded store in ${dataDir}: name the server's directory with --data-dir. ` +
        'Objects that are kept in etcd are backed up with etcd’s own tools.',
    )
  }
  if (`${to}/`.startsWith(`${resolve(dataDir)}/`)) {
    throw new UsageError(
      `--to ${to}: it is in the directory that is backed up, and would be lost with it. Name another.`,
    )
  }
  if ((await namesIn(to)).length > 0) throw new UsageError(`--to ${to}: it is not empty. Name a new directory.`)

  const partial = join(dirname(to), `${basename(to)}.partial`)
  try {
    await ensureDirectory(dirname(to))
    await rm(partial, { recursive: true, force: true })
    await ensurePrivateDirectory(partial)
  } catch (error) {
    const { message } = error as Error
    throw new UsageError(`--to ${to} cannot be made: ${message}. Name a directory that can be written to.`)
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
  // A file that is being replaced has another name until it is whole.
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
