import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SubPathError } from './disk.ts'
import { makeSubPath, splitSubPath } from './sub-path.ts'

describe('makeSubPath', () => {
  it('never returns a path outside the volume, regardless of the links that it contains', async () => {
    const top = await realpath(await mkdtemp(join(tmpdir(), 'stowage-sub-')))
    const volume = join(top, 'volume')
    await mkdir(join(volume, 'dir', 'inner'), { recursive: true })
    await mkdir(join(top, 'secret'))
    await symlink('../secret', join(volume, 'up'))
    await symlink(join(top, 'secret'), join(volume, 'dir', 'abs'))
    await symlink('inner', join(volume, 'dir', 'near'))
    await writeFile(join(volume, 'file'), '')
    const segment = fc.constantFrom('dir', 'inner', 'up', 'abs', 'near', 'file', 'new', '.', '..', '')
    await fc.assert(
      fc.asyncProperty(fc.array(segment, { minLength: 1, maxLength: 5 }), async (segments) => {
        const result = await makeSubPath(volume, segments.join('/')).catch((error) => error)
        if (typeof result === 'string') expect(await realpath(result)).toBe(result)
        if (typeof result === 'string') expect(`${result}/`.startsWith(`${volume}/`)).toBe(true)
        expect(await readdir(join(top, 'secret'))).toEqual([])
      }),
      { numRuns: 300 },
    )
    await rm(top, { recursive: true, force: true })
  })

  it("gives new directories the volume's mode", async () => {
    const volume = await realpath(await mkdtemp(join(tmpdir(), 'stowage-sub-')))
    await chmod(volume, 0o2775)
    await mkdir(join(volume, 'existing'))
    await chmod(join(volume, 'existing'), 0o700)
    await makeSubPath(volume, 'new/inner')
    await makeSubPath(volume, 'existing')
    const readMode = async (...segments: string[]) => (await stat(join(volume, ...segments))).mode & 0o7777
    expect([await readMode('new'), await readMode('new', 'inner')]).toEqual([0o2775, 0o2775])
    expect(await readMode('existing')).toBe(0o700)
    await rm(volume, { recursive: true })
  })
})

describe('splitSubPath', () => {
  it('returns no empty part and no "..", or throws a SubPathError', () => {
    fc.assert(
      fc.property(fc.string(), (subPath) => {
        try {
          expect(splitSubPath(subPath).every((part) => part !== '..' && part !== '' && !part.includes('/'))).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(SubPathError)
        }
      }),
    )
  })
})
