// Reserves disk space for records, because on a full disk even a volume's deletion must write a record first. The reserve
// is released when a record cannot be written, and allocated again when there is space.
import { open, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface Reserve {
  release(): Promise<void>
  /** Allocates the reserve again. Has no effect if it exists or the disk is too full. */
  renew(): Promise<void>
}

const RESERVE_BYTES = 1_048_576

/** The reserve is not renewed if there is less free space than this. */
const RENEW_ABOVE_BYTES = 16 * RESERVE_BYTES

export async function openReserve(path: string): Promise<Reserve> {
  let isAllocated = false

  async function renew(): Promise<void> {
    if (isAllocated) return
    const { bavail, bsize } = await statfs(dirname(path))
    if (bavail * bsize < RENEW_ABOVE_BYTES) return
    try {
      await allocateReserve(path)
      isAllocated = true
    } catch {
      await rm(path, { force: true }) // remove a partial reserve
    }
  }

  // Reuse the reserve of an earlier process, because on a full disk no new one can be allocated.
  isAllocated = await isReserveAllocated(path)
  await renew()
  return {
    renew,
    async release() {
      isAllocated = false
      await rm(path, { force: true })
    },
  }
}

async function allocateReserve(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(Buffer.alloc(RESERVE_BYTES, 0xff)) // zeros might be stored as a hole
    await file.sync()
  } finally {
    await file.close()
  }
}

async function isReserveAllocated(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return false
  try {
    return (await file.stat()).size >= RESERVE_BYTES
  } finally {
    await file.close()
  }
}
