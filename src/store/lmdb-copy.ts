// Copies the LMDB store in a directory, for `stowage backup`. Works while another process writes to it: the copy runs in
// one LMDB read transaction, so it holds a consistent snapshot. The copy opens like any other store.
import { chmod, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { ensurePrivateDirectory, syncDirectory } from '../base/files.ts'
import { isDirectoryInUse } from './directory-lock.ts'
import { checkLmdbFile } from './lmdb-file.ts'

/** The name of the store's file in its directory. */
export const STORE_FILE = 'store.mdb'

/** Copies the store in directory `from` to directory `to`. Resolves with the size of the copy once it is durable. */
export async function copyLmdbStore({ from, to }: { readonly from: string; readonly to: string }): Promise<number> {
  const source = join(from, STORE_FILE)
  const target = join(to, STORE_FILE)
  // A process that has the store open has checked the file; and while it writes, an intact file can look truncated.
  if (!(await isDirectoryInUse(from))) await checkLmdbFile(source)
  await ensurePrivateDirectory(to) // first, because LMDB creates the file world-readable
  const db = openLmdb({ path: source, noSubdir: true, readOnly: true, maxDbs: 1 })
  try {
    await db.backup(target, true)
  } finally {
    await db.close()
  }
  await chmod(target, 0o600)
  const file = await open(target, 'r')
  await file.sync().finally(() => file.close())
  await syncDirectory(to)
  await checkLmdbFile(target)
  return (await stat(target)).size
}
