import { link, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { createUsage } from './usage.ts'

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stowage-usage-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

describe('measureFilesystem', () => {
  it('PIO-8 returns used and available bytes within the total', async () => {
    const usage = await createUsage({ clock: manualClock() }).measureFilesystem(directory)
    expect(usage.totalBytes).toBeGreaterThan(0)
    expect(usage.usedBytes + usage.availableBytes).toBeLessThanOrEqual(usage.totalBytes)
    expect(usage.usedInodes + usage.availableInodes).toBe(usage.totalInodes)
  })
})

describe('measureDirectory', () => {
  it('PIO-8 counts hard links once and does not follow symbolic links', async () => {
    await mkdir(join(directory, 'deep', 'deeper'), { recursive: true })
    await writeFile(join(directory, 'deep', 'deeper', 'data'), Buffer.alloc(100_000, 1))
    await link(join(directory, 'deep', 'deeper', 'data'), join(directory, 'same data'))
    await symlink('/', join(directory, 'everything'))
    const paths = ['deep', 'deep/deeper', 'same data'].map((name) => join(directory, name))
    const blocks = (await Promise.all(paths.map((path) => stat(path)))).reduce((sum, stats) => sum + stats.blocks, 0)

    const usage = await createUsage({ clock: manualClock() }).measureDirectory(directory)
    expect(usage).toEqual({ usedBytes: blocks * 512, files: 4, isComplete: true })
    expect(usage.usedBytes).toBeGreaterThanOrEqual(100_000)
  })

  it('PIO-8 reports an incomplete result for more files than the maximum', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await writeFile(join(directory, name), name)
    const usage = createUsage({ clock: manualClock(), filesWalkedMax: 3 })
    expect(await usage.measureDirectory(directory)).toMatchObject({ files: 3, isComplete: false })
  })

  it('PIO-8 shares its result with concurrent callers and caches it for a short time', async () => {
    const clock = manualClock()
    const usage = createUsage({ clock })
    const [firstUsage, secondUsage] = await Promise.all([
      usage.measureDirectory(directory),
      usage.measureDirectory(directory),
    ])
    expect(firstUsage).toBe(secondUsage)
    await writeFile(join(directory, 'new'), 'data')
    expect((await usage.measureDirectory(directory)).files).toBe(0)
    await clock.advance(60_000)
    expect((await usage.measureDirectory(directory)).files).toBe(1)
  })

  it('PIO-8 does not cache a failure', async () => {
    const usage = createUsage({ clock: manualClock() })
    const lateDirectory = join(directory, 'late')
    await expect(usage.measureDirectory(lateDirectory)).rejects.toThrow('ENOENT')
    await mkdir(lateDirectory)
    expect(await usage.measureDirectory(lateDirectory)).toMatchObject({ files: 0 })
  })
})
