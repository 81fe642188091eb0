// Restores a store from an LMDB snapshot of another store's file, such as the store in a backup directory. An interrupted
// restore starts over.
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureDirectory, syncDirectory } from '../../base/files.ts'
import { lockDirectory } from '../files/directory-lock.ts'
import { copyLmdbStore, STORE_FILE, type StoreCopy } from '../files/lmdb-copy.ts'
import { requireNoStore } from './restore-store.ts'

export interface RestoreCopyOptions {
  /** The directory of the store to copy. Other files in it are not copied. */
  readonly sourceDir: string
  /** The directory of the new store, which is created if it does not exist. It must not contain a store. */
  readonly dir: string
  /**
   * Writes the backup's files outside the store, such as keys. Runs before the store is moved to its place, so that a
   * restored store never lacks them.
   */
  readonly writeOtherFiles: () => Promise<void>
}

/** The directory in which a store is copied. */
export const COPYING_DIR = 'copy.restoring'

export async function restoreCopy({ sourceDir, dir, writeOtherFiles }: RestoreCopyOptions): Promise<StoreCopy> {
  await ensureDirectory(dir)
  const lock = await lockDirectory(dir) // prevents a server from starting on the directory
  try {
    await requireNoStore(dir)
    const copyDir = join(dir, COPYING_DIR)
    await rm(copyDir, { recursive: true, force: true })
    const copy = await copyLmdbStore({ sourceDir, targetDir: copyDir })
    await writeOtherFiles()
    await rename(join(copyDir, STORE_FILE), join(dir, STORE_FILE))
    await rm(copyDir, { recursive: true, force: true })
    await syncDirectory(dir)
    return copy
  } finally {
    await lock.release()
  }
}
