import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { filesystemBytes, SUPERBLOCK_BYTES } from './superblock.ts'

const BLOCKS_MAX = 2 ** 40 // 4 PiB with blocks of 4 KiB

describe('filesystemBytes', () => {
  it('reads the size of an xfs with blocks of 1 or 4 KiB', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: BLOCKS_MAX }), fc.constantFrom(1024, 4096), (blocks, blockBytes) => {
        const start = Buffer.alloc(SUPERBLOCK_BYTES)
        start.write('XFSB')
        start.writeUInt32BE(blockBytes, 4)
        start.writeBigUInt64BE(BigInt(blocks), 8)
        expect(filesystemBytes(start, 'xfs')).toBe(blocks * blockBytes)
      }),
    )
  })

  it('reads the size of an ext4 with and without the 64bit feature', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: BLOCKS_MAX }), fc.boolean(), (blocks, has64Bits) => {
        const start = Buffer.alloc(SUPERBLOCK_BYTES)
        start.writeUInt16LE(0xef53, 1024 + 0x38)
        start.writeUInt32LE(2, 1024 + 0x18)
        start.writeUInt32LE(has64Bits ? 0x80 : 0, 1024 + 0x60)
        start.writeUInt32LE(blocks % 2 ** 32, 1024 + 4)
        start.writeUInt32LE(Math.floor(blocks / 2 ** 32), 1024 + 0x150)
        expect(filesystemBytes(start, 'ext4')).toBe((has64Bits ? blocks : blocks % 2 ** 32) * 4096)
      }),
    )
  })

  it.each(['xfs', 'ext4'] as const)('throws without a superblock of %s', (type) => {
    expect(() => filesystemBytes(Buffer.alloc(SUPERBLOCK_BYTES), type)).toThrow(`no ${type} superblock`)
  })
})
