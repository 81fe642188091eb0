// Copies the store of a directory as it is at one moment, also while another process writes to it: LMDB lets readers
// keep the state they began with. The copy holds nothing but that state, and opens like any other store.
import { chmod, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { ensurePrivateDirectory, syncDirectory } from '../base/files.ts'
import { isDirectoryInUse } from './directory-lock.ts'
import { checkLmdbFile } from './lmdb-file.ts'

/** The file of a store in its directory. */
export const STORE_FILE = 'store.mdb'

/** Both are directories of a store; `to` has none yet. Resolves with the size of the copy once the disk has it. */
export async function copyLmdbStore({ from, to }: { readonly from: string; readonly to: string }): Promise<number> {
  const source = join(from, STORE_FILE)
  const target = join(to, STORE_FILE)
  // Whoever has it open has looked at it. While it grows under our eyes, a whole file would seem to be cut.
  if (!(await isDirectoryInUse(from))) await checkLmdbFile(source)
  await ensurePrivateDirectory(to) // before the file is there: LMDB makes it readable for everyone
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
