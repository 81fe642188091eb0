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

describe('usage', () => {
  it('PIO-8 of a file system has used and available within the total', async () => {
    const usage = await createUsage({ clock: manualClock() }).ofFilesystem(directory)
    expect(usage.totalBytes).toBeGreaterThan(0)
    expect(usage.usedBytes + usage.availableBytes).toBeLessThanOrEqual(usage.totalBytes)
    expect(usage.usedInodes + usage.availableInodes).toBe(usage.totalInodes)
  })

  it('PIO-8 of a directory counts hard links once and does not follow symbolic links', async () => {
    await mkdir(join(directory, 'deep', 'deeper'), { recursive: true })
    await writeFile(join(directory, 'deep', 'deeper', 'data'), Buffer.alloc(100_000, 1))
    await link(join(directory, 'deep', 'deeper', 'data'), join(directory, 'same data'))
    await symlink('/', join(directory, 'everything'))
    const paths = ['deep', 'deep/deeper', 'same data'].map((name) => join(directory, name))
    const blocks = (await Promise.all(paths.map((path) => stat(path)))).reduce((sum, it) => sum + it.blocks, 0)

    const usage = await createUsage({ clock: manualClock() }).ofDirectory(directory)
    expect(usage).toEqual({ usedBytes: blocks * 512, files: 4, isComplete: true })
    expect(usage.usedBytes).toBeGreaterThanOrEqual(100_000)
  })

  it('PIO-8 of a large directory is reported as incomplete', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await writeFile(join(directory, name), name)
    const usage = createUsage({ clock: manualClock(), filesWalkedMax: 3 })
    expect(await usage.ofDirectory(directory)).toMatchObject({ files: 3, isComplete: false })
  })

  it('PIO-8 of a directory is shared by concurrent callers and cached for a short time', async () => {
    const clock = manualClock()
    const usage = createUsage({ clock })
    const [one, other] = await Promise.all([usage.ofDirectory(directory), usage.ofDirectory(directory)])
    expect(one).toBe(other)
    await writeFile(join(directory, 'new'), 'data')
    expect((await usage.ofDirectory(directory)).files).toBe(0)
    await clock.advance(60_000)
    expect((await usage.ofDirectory(directory)).files).toBe(1)
  })

  it('PIO-8 is not cached after a failure', async () => {
    const usage = createUsage({ clock: manualClock() })
    const late = join(directory, 'late')
    await expect(usage.ofDirectory(late)).rejects.toThrow('ENOENT')
    await mkdir(late)
    expect(await usage.ofDirectory(late)).toMatchObject({ files: 0 })
  })
})
