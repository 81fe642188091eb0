// LMDB's table of readers, which is a file next to the store. LMDB maps it into memory and creates it with holes; on a full disk
// the first write to a hole would end the process with SIGBUS. So the file is created here, without holes.
import { open, rename, rm, stat } from 'node:fs/promises'

/** Room for 188 readers; LMDB needs 126. A multiple of the page size, so that the mapping ends with the file. */
const LOCK_FILE_BYTES = 12_288
const BLOCK_BYTES = 512 // the unit of Stats.blocks

export const lockFileOf = (storePath: string): string => `${storePath}-lock`

/**
 * Creates the table of readers unless it exists without holes. The caller holds the lock on the directory, so no server has the
 * table open. A backup that is copying the store has registered itself in the replaced table, and is no longer protected.
 */
export async function ensureLockFile(storePath: string): Promise<void> {
  const path = lockFileOf(storePath)
  const stats = await stat(path).catch(() => undefined)
  if (stats && stats.size >= LOCK_FILE_BYTES && stats.blocks * BLOCK_BYTES >= stats.size) return
  const newPath = `${path}.new`
  await rm(newPath, { force: true })
  const file = await open(newPath, 'wx', 0o600)
  try {
    await file.writeFile(Buffer.alloc(LOCK_FILE_BYTES))
    await file.sync() // allocates the blocks
  } finally {
    await file.close()
  }
  await rename(newPath, path)
}
