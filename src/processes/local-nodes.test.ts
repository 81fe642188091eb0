import { describe, expect, it } from 'vitest'
import { poolBytesOn } from './local-nodes.ts'

const GIB = 1024 ** 3
const sizeOn = (diskBytes: number, count: number) =>
  poolBytesOn({ dir: '/data', count, disk: { blocks: diskBytes / 4096, bsize: 4096 } })

describe('the pools of nodes', () => {
  it('share half of a small disk, and have at most 10Gi', () => {
    expect(sizeOn(6 * GIB, 3)).toBe(GIB)
    expect(sizeOn(1000 * GIB, 3)).toBe(10 * GIB)
  })

  it('SYS-12 are an error that names the disk if they would have 0 bytes', () => {
    expect(() => sizeOn(4 * 1024 ** 2, 3)).toThrowError(
      expect.objectContaining({
        name: 'UsageError',
        message: expect.stringMatching(/The disk of \/data has 4194304 bytes.*--data-dir.*--nodes.*--pool-size/),
      }),
    )
  })
})
