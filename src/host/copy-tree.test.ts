import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { HOST_CONTENT, startSwapAttack } from '../base/trees/swap-attack.fixture.ts'
import { copyTree } from './copy-tree.ts'
import { createRun } from './run.ts'

const run = createRun({ clock: systemClock() })
const COPIES = 30 * Number(process.env.SCALE ?? 1)

describe('copyTree', () => {
  for (const isRoot of [true, false]) {
    it(`copies contents, modes, times, links and holes (isRoot: ${isRoot})`, async () => {
      const top = await mkdtemp(join(tmpdir(), 'stowage-copy-'))
      const [sourceDir, targetDir] = [join(top, 'from'), join(top, 'to')]
      await mkdir(join(sourceDir, 'd'), { recursive: true })
      await mkdir(targetDir)
      await writeFile(join(sourceDir, 'd', 'f'), 'text', { mode: 0o640 })
      await utimes(join(sourceDir, 'd', 'f'), 1_000, 2_000)
      await link(join(sourceDir, 'd', 'f'), join(sourceDir, 'same'))
      await symlink('/etc', join(sourceDir, 'l'))
      await writeFile(join(sourceDir, 'sparse'), '')
      await truncate(join(sourceDir, 'sparse'), 8 * 1_048_576)
      await chmod(join(sourceDir, 'd'), 0o2750)
      await copyTree(sourceDir, targetDir, { run, isRoot })
      expect((await readdir(targetDir)).sort()).toEqual(['d', 'l', 'same', 'sparse'])
      expect(await readFile(join(targetDir, 'd', 'f'), 'utf8')).toBe('text')
      const { mode, mtimeMs, ino } = await stat(join(targetDir, 'd', 'f'))
      expect([mode & 0o7777, mtimeMs, (await stat(join(targetDir, 'same'))).ino]).toEqual([0o640, 2_000_000, ino])
      expect((await lstat(join(targetDir, 'd'))).mode & 0o7777).toBe(0o2750)
      expect(await readlink(join(targetDir, 'l'))).toBe('/etc')
      expect(await stat(join(targetDir, 'sparse'))).toMatchObject({ size: 8 * 1_048_576, blocks: 0 })
      await rm(top, { recursive: true })
    })
  }

  it('copies no file from outside the volume while a pod replaces a directory with a link', {
    timeout: 600_000,
  }, async () => {
    const attack = await startSwapAttack()
    try {
      const leakedFiles: string[] = []
      await attack.repeat(COPIES, async (index) => {
        const copy = join(attack.scratch, String(index))
        await mkdir(copy)
        await copyTree(attack.volume, copy, { run, isRoot: true }).catch(() => {})
        for (const file of await readdir(join(copy, 'd')).catch(() => [])) {
          if ((await lstat(join(copy, 'd'))).isSymbolicLink()) break
          if ((await readFile(join(copy, 'd', file), 'utf8')) === HOST_CONTENT) leakedFiles.push(file)
        }
        await rm(copy, { recursive: true })
      })
      expect(leakedFiles).toEqual([])
    } finally {
      await attack.dispose()
    }
  })
})
