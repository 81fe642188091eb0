import { execFileSync } from 'node:child_process'
import { buildSync } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { nextGrowthPercent } from './growth.ts'

const MB = 1024 * 1024

describe('nextGrowthPercent', () => {
  const next = (percent: number, activeMs: number, liveBytes: number, previousActiveMs = 60_000) =>
    nextGrowthPercent({ percent, activeMs, previousActiveMs, liveBytes })

  it('keeps the smallest limit while full collections are rare', () => {
    expect(next(50, 1_500, 20 * MB)).toBe(50)
    expect(next(50, 60_000, 20 * MB)).toBe(50)
  })

  it('raises the limit while full collections follow each other closely, up to the one of V8', () => {
    expect(next(50, 750, 20 * MB)).toBe(100)
    expect(next(100, 500, 10 * MB)).toBe(300)
    expect(next(50, 0, 10 * MB)).toBe(300)
  })

  it('lowers the limit when full collections become rare', () => {
    expect(next(300, 3_000, 20 * MB)).toBe(150)
    expect(next(300, 60_000, 20 * MB)).toBe(50)
  })

  it('limits the bytes by which a large heap grows, but never below the smallest limit', () => {
    expect(next(300, 100, 40 * MB)).toBe(100)
    expect(next(300, 100, 4_000 * MB)).toBe(50)
  })

  it('lets the heap grow further only if two intervals were short, as in a burst', () => {
    expect(next(100, 500, 40 * MB)).toBe(100)
    expect(next(100, 500, 40 * MB, 500)).toBe(150)
    expect(next(150, 250, 64 * MB, 250)).toBe(300)
    expect(next(300, 100, 192 * MB, 100)).toBe(100)
    expect(next(100, 100, 4_000 * MB, 100)).toBe(50)
  })
})

it('a process that allocates quickly collects its heap less often than with the smallest limit', () => {
  expect(collectionsWith('limitHeapGrowth')).toBeLessThan(collectionsWith('resetHeapGrowth'))
})

/** Returns the number of full collections of a process that replaces objects which survive the young generation. */
function collectionsWith(limit: string): number {
  const { outputFiles } = buildSync({
    stdin: {
      contents: `
        import { ${limit} } from './growth.ts'
        ${limit}()
        const survivors = []
        for (let round = 0; round < 400; round++) {
          for (let index = 0; index < 4_000; index++) survivors[(round * 4_000 + index) % 200_000] = { round, index, text: [index] }
          await new Promise((resolve) => setImmediate(resolve))
        }`,
      resolveDir: import.meta.dirname,
      loader: 'ts',
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  const flags = ['--trace-gc', '--max-semi-space-size=1', '--input-type=module', '--eval', outputFiles[0]!.text]
  const output = execFileSync(process.execPath, flags, { encoding: 'utf8' })
  return output.split('\n').filter((line) => line.includes('Mark-Compact')).length
}
