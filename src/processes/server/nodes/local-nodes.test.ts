import { describe, expect, it } from 'vitest'
import { calculatePoolBytes } from './local-nodes.ts'

const GIB = 1024 ** 3
const poolBytesOn = (diskBytes: number, count: number) =>
  calculatePoolBytes({ dir: '/data', count, disk: { blocks: diskBytes / 4096, bsize: 4096 } })

describe('calculatePoolBytes', () => {
  it('divides half of a small disk among the nodes, with at most 10Gi each', () => {
    expect(poolBytesOn(6 * GIB, 3)).toBe(GIB)
    expect(poolBytesOn(1000 * GIB, 3)).toBe(10 * GIB)
  })

  it("throws an error with the disk's size if a pool would have 0 bytes", () => {
    expect(() => poolBytesOn(4 * 1024 ** 2, 3)).toThrowError(
      expect.objectContaining({
        name: 'UsageError',
        message: expect.stringMatching(/The disk of \/data has 4194304 bytes.*--data-dir.*--nodes.*--pool-size/),
      }),
    )
  })
})
