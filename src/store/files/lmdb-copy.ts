// Copies the LMDB store in a directory. Another process may write to the store at the same time: the copy runs in one LMDB
// read transaction, so it is a consistent snapshot.
import { chmod, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { ensurePrivateDirectory, syncDirectory } from '../../base/files.ts'
import type { RecordDamage } from '../records/record-inspector.ts'
import { isDirectoryInUse } from './directory-lock.ts'
import { checkLmdbCopy, checkLmdbFile } from './lmdb-file.ts'

/** The name of the store's file in its directory. */
export const STORE_FILE = 'store.mdb'

export interface StoreCopy {
  readonly bytes: number
  /** The records in the copy that do not match their checksums. */
  readonly damagedRecords: readonly RecordDamage[]
}

/** Copies the store in `sourceDir` to `targetDir`. Resolves when the copy is durable and checked. */
export async function copyLmdbStore({
  sourceDir,
  targetDir,
}: {
  readonly sourceDir: string
  readonly targetDir: string
}): Promise<StoreCopy> {
  const source = join(sourceDir, STORE_FILE)
  const target = join(targetDir, STORE_FILE)
  // A process that has opened the store has already checked the file, which can look truncated during a write.
  if (!(await isDirectoryInUse(sourceDir))) await checkLmdbFile(source)
  await ensurePrivateDirectory(targetDir) // first, because LMDB creates the file world-readable
  const db = openLmdb({ path: source, noSubdir: true, readOnly: true, maxDbs: 1 })
  try {
    await db.backup(target, true)
  } finally {
    await db.close()
  }
  await chmod(target, 0o600)
  const file = await open(target, 'r')
  await file.sync().finally(() => file.close())
  await syncDirectory(targetDir)
  return { bytes: (await stat(target)).size, damagedRecords: await checkLmdbCopy(target) }
}
