// A little of the disk, kept for records: without it a full pool could not even be told that a volume is to be deleted.
// It is given up when a record finds no room, and taken again once there is some.
import { open, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface Reserve {
  release(): Promise<void>
  /** Does nothing where it is there, or where there is no room for it. */
  renew(): Promise<void>
}

const RESERVE_BYTES = 1_048_576

/** With less than this left, others need it more. */
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
      await rm(path, { force: true }) // half of one would keep the rest of the disk full
    }
  }

  // One that an earlier run left is as good as a new one, and on a full disk it is the only one to be had.
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
    await file.writeFile(Buffer.alloc(RESERVE_BYTES, 0xff)) // zeros might take no space
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
