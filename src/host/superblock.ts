// Parses the size of a file system from its superblock, which is cheaper than running xfs_db or dumpe2fs.
import type { FilesystemType } from './host.ts'

/** The superblocks of all types are within this many bytes from the start. */
export const SUPERBLOCK_BYTES = 2048

export function filesystemBytes(start: Buffer, type: FilesystemType): number {
  const size = { xfs: xfsBytes, ext4: ext4Bytes }[type](start)
  if (size === undefined) throw new Error(`The device has no ${type} superblock.`)
  return size
}

const XFS_MAGIC = 0x58465342 // "XFSB"

/** The superblock is big-endian and starts with magic, block size and number of data blocks. */
function xfsBytes(start: Buffer): number | undefined {
  if (start.readUInt32BE(0) !== XFS_MAGIC) return undefined
  return Number(start.readBigUInt64BE(8)) * start.readUInt32BE(4)
}

const EXT4_SUPERBLOCK_OFFSET = 1024
const EXT4_MAGIC = 0xef53
const EXT4_64BIT = 0x80 // the feature that adds an upper half to the block count

function ext4Bytes(start: Buffer): number | undefined {
  const superblock = start.subarray(EXT4_SUPERBLOCK_OFFSET)
  if (superblock.readUInt16LE(0x38) !== EXT4_MAGIC) return undefined
  const blockBytes = 1024 * 2 ** superblock.readUInt32LE(0x18)
  const has64Bits = (superblock.readUInt32LE(0x60) & EXT4_64BIT) !== 0
  const blocks = superblock.readUInt32LE(4) + (has64Bits ? superblock.readUInt32LE(0x150) * 2 ** 32 : 0)
  return blocks * blockBytes
}
