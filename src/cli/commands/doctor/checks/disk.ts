// Checks the free space on the disk of the local data directory, if a server has been started on this machine.
import { stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { storeDirOf } from '../../../../processes/store-location.ts'
import { STORE_FILE } from '../../../../store/index.ts'
import { formatBytes } from '../../status/format-status.ts'
import type { Check, Finding } from '../check.ts'

const MIB = 1_024 ** 2
/** The store rejects writes when the disk is full, and needs space for new pages and for a compaction. */
const AVAILABLE_BYTES_MIN = 100 * MIB
const AVAILABLE_BYTES_LOW = 1_024 * MIB
const AVAILABLE_FILES_MIN = 1_000

interface DiskUsage {
  readonly dataDir: string
  readonly availableBytes: number
  /** Free inodes. Absent on file systems that do not limit them. */
  readonly availableFiles?: number
  /** The size of the embedded store. Absent with etcd. */
  readonly storeBytes?: number
}

export const disk: Check = {
  id: 'disk',
  title: 'Disk',
  async run({ dataDir }) {
    const usage = await readUsage(dataDir)
    return usage ? describeUsage(usage) : []
  },
}

/** Returns undefined if the directory does not exist. */
async function readUsage(dataDir: string): Promise<DiskUsage | undefined> {
  const fileSystem = await statfs(dataDir).catch(() => undefined)
  if (!fileSystem) return undefined
  const { bavail, bsize, files, ffree } = fileSystem
  const store = await stat(join(storeDirOf(dataDir), STORE_FILE)).catch(() => undefined)
  return {
    dataDir,
    availableBytes: bavail * bsize,
    ...(files > 0 ? { availableFiles: ffree } : {}),
    ...(store ? { storeBytes: store.size } : {}),
  }
}

export function describeUsage({ dataDir, availableBytes, availableFiles, storeBytes }: DiskUsage): Finding[] {
  const store = storeBytes === undefined ? '' : `, and the store uses ${formatBytes(storeBytes)}`
  const message = `The file system of ${dataDir} has ${formatBytes(availableBytes)} available${store}.`
  const remedy = `df -h ${dataDir}`
  if (availableBytes < AVAILABLE_BYTES_MIN)
    return [{ status: 'error', message: `${message} Writes will fail soon.`, remedy }]
  if (availableBytes < AVAILABLE_BYTES_LOW) return [{ status: 'warning', message, remedy }]
  if (availableFiles !== undefined && availableFiles < AVAILABLE_FILES_MIN) {
    const filesMessage = `The file system of ${dataDir} has room for only ${availableFiles} more files.`
    return [{ status: 'warning', message: filesMessage, remedy: `df -i ${dataDir}` }]
  }
  return [{ status: 'ok', message }]
}
