// Disk space reserved for records: without it, a full disk would prevent even the deletion of volumes, which writes a
// record first. Released when a record cannot be written, and allocated again once there is space.
import { open, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface Reserve {
  release(): Promise<void>
  /** Allocates the reserve again. No-op if it exists or the disk is too full. */
  renew(): Promise<void>
}

const RESERVE_BYTES = 1_048_576

/** With less free space than this the reserve is not renewed. */
const RENEW_ABOVE_BYTES = 16 * RESERVE_BYTES

export async function openReserve(path: string): Promise<Reserve> {
  let isThere = false

  async function renew(): Promise<void> {
    if (isThere) return
    const { bavail, bsize } = await statfs(dirname(path))
    if (bavail * bsize < RENEW_ABOVE_BYTES) return
    try {
      await fill(path)
      isThere = true
    } catch {
      await rm(path, { force: true }) // do not keep a partial reserve
    }
  }

  // Reuse the reserve of an earlier process: on a full disk no new one can be allocated.
  isThere = await holdsSpace(path)
  await renew()
  return {
    renew,
    async release() {
      isThere = false
      await rm(path, { force: true })
    },
  }
}

async function fill(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(Buffer.alloc(RESERVE_BYTES, 0xff)) // zeros might be stored as a hole
    await file.sync()
  } finally {
    await file.close()
  }
}

async function holdsSpace(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return false
  try {
    return (await file.stat()).size >= RESERVE_BYTES
  } finally {
    await file.close()
  }
}
