import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { openRotatingFile } from './rotating-file.ts'

describe('the audit file', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-audit-'))
  })
  afterEach(() => rm(dir, { recursive: true }))

  const limits = { bytesMax: 10, backupsMax: 2, ageMsMax: 0 }
  const contents = async () => {
    const names = (await readdir(dir)).sort()
    return Promise.all(names.map((name) => readFile(join(dir, name), 'utf8')))
  }

  it('SYS-21 is accessible only to its owner, and the next process appends to it', async () => {
    const path = join(dir, 'audit.log')
    for (const text of ['a\n', 'b\n']) {
      const file = await openRotatingFile({ path, ...limits, clock: manualClock() })
      await file.write(Buffer.from(text))
      await file.close()
    }
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await contents()).toEqual(['a\nb\n'])
  })

  it('SYS-21 is rotated by size, and the oldest files are deleted', async () => {
    const clock = manualClock()
    const file = await openRotatingFile({ path: join(dir, 'audit.log'), ...limits, clock })
    for (const text of ['one 1\n', 'two 2\n', 'three 3\n', 'four 4\n']) {
      await file.write(Buffer.from(text))
      await clock.advance(1_000)
    }
    await file.close()
    expect(await contents()).toEqual(['two 2\n', 'three 3\n', 'four 4\n'])
    expect((await readdir(dir)).sort()[0]).toMatch(/^audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/)
  })

  it('SYS-21 deletes rotated files by age, even if the current file is not rotated', async () => {
    const clock = manualClock()
    const ageMsMax = 24 * 60 * 60 * 1_000
    const file = await openRotatingFile({ path: join(dir, 'audit.log'), ...limits, ageMsMax, clock })
    await file.write(Buffer.from('one 1\n'))
    await file.write(Buffer.from('two 2\n'))
    await clock.advance(ageMsMax + 1)
    await file.write(Buffer.from('x\n'))
    await file.close()
    expect(await contents()).toEqual(['two 2\nx\n'])
  })

  it('SYS-21 contains each batch once if old files cannot be deleted and the batch is written again', async () => {
    const clock = manualClock()
    const ageMsMax = 24 * 60 * 60 * 1_000
    const path = join(dir, 'audit.log')
    const file = await openRotatingFile({ path, bytesMax: 0, backupsMax: 0, ageMsMax, clock })
    const obstacle = join(dir, 'audit-1970-01-01T00-00-00.000.log')
    await mkdir(obstacle) // a directory, which cannot be deleted like a file
    await clock.advance(2 * ageMsMax)
    await expect(file.write(Buffer.from('one\n'))).rejects.toThrow(obstacle)
    await file.write(Buffer.from('one\n'))
    await file.close()
    expect(await readFile(path, 'utf8')).toBe('one\n')
  })
})
