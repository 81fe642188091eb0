// How large a file system believes it is, from its superblock. Reading 2 KiB ourselves costs nothing; the tools that
// print this are programs to start, one for each type.
import type { FilesystemType } from './host.ts'

/** The superblock of every type lies within this many bytes from the start. */
export const SUPERBLOCK_BYTES = 2048

export function filesystemBytes(start: Buffer, type: FilesystemType): number {
  const size = { xfs: xfsBytes, ext4: ext4Bytes }[type](start)
  if (size === undefined) throw new Error(`There is no ${type} superblock where one was expected.`)
  return size
}

const XFS_MAGIC = 0x58465342 // "XFSB"

/** Big-endian, at the start: magic, block size, number of data blocks. */
function xfsBytes(start: Buffer): number | undefined {
  if (start.readUInt32BE(0) !== XFS_MAGIC) return undefined
  return Number(start.readBigUInt64BE(8)) * start.readUInt32BE(4)
}

const EXT4_AT = 1024
const EXT4_MAGIC = 0xef53
const EXT4_64BIT = 0x80 // the upper half of the block count is only meant with this feature

function ext4Bytes(start: Buffer): number | undefined {
  const superblock = start.subarray(EXT4_AT)
  if (superblock.readUInt16LE(0x38) !== EXT4_MAGIC) return undefined
  const blockBytes = 1024 * 2 ** superblock.readUInt32LE(0x18)
  const has64Bits = (superblock.readUInt32LE(0x60) & EXT4_64BIT) !== 0
  const blocks = superblock.readUInt32LE(4) + (has64Bits ? superblock.readUInt32LE(0x150) * 2 ** 32 : 0)
  return blocks * blockBytes
}
