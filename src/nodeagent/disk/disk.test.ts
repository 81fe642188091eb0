// One contract for both implementations of NodeDisk. Mounts are tested only with permission to mount.
import { chmod, lstat, mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { systemClock } from '../../base/clock.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import { type NodeDisk, SubPathError } from './disk.ts'
import { createHostDisk } from './host-disk.ts'
import { createMemoryDisk } from './memory-disk.ts'
import { partsOf } from './sub-path.ts'

const run = createRun({ clock: systemClock() })
const mounts = createMounts({ run })
const skipped = skipReason(await probeThisMachine(), ['mount'])

const DISKS = { host: () => createHostDisk({ mounts, run }), memory: () => createMemoryDisk() }

for (const [name, open] of Object.entries(DISKS)) {
  describe(`the ${name} disk`, () => {
    let root: string
    let disk: NodeDisk
    beforeEach(async () => {
      disk = open()
      root = name === 'host' ? await realpath(await mkdtemp(join(tmpdir(), 'stowage-disk-'))) : '/root'
      await disk.makeDirectory(root, 0o755)
    })
    afterEach(async () => {
      if (name === 'host') await rm(root, { recursive: true, force: true })
    })
    const at = (...parts: string[]) => join(root, ...parts)

    it('SYS-7 reports missing paths as absent and removes them without error', async () => {
      expect(await disk.kindOf(at('x'))).toBeUndefined()
      expect(await disk.list(at('x'))).toEqual([])
      expect(await disk.readText(at('x'))).toBeUndefined()
      await disk.removeFile(at('x'))
      await disk.removeScratch(at('x'))
      expect(await disk.removeEmptyDirectory(at('x'))).toBe(true)
    })

    it('SYS-7 creates directories with parents and removes only empty ones', async () => {
      await disk.makeDirectory(at('a', 'b'), 0o750)
      await disk.makeDirectory(at('a', 'b'), 0o750)
      await disk.writeText(at('a', 'b', 'f'), 'text')
      expect(await disk.list(at('a'))).toEqual(['b'])
      expect(await disk.removeEmptyDirectory(at('a', 'b'))).toBe(false)
      expect(await disk.readText(at('a', 'b', 'f'))).toBe('text')
      await disk.removeFile(at('a', 'b', 'f'))
      expect(await disk.removeEmptyDirectory(at('a', 'b'))).toBe(true)
      expect(await disk.kindOf(at('a', 'b'))).toBeUndefined()
    })

    it('SYS-7 replaces a file atomically, in an existing directory', async () => {
      await expect(disk.writeText(at('no', 'f'), 'x')).rejects.toMatchObject({ code: 'ENOENT' })
      await disk.writeText(at('f'), 'one')
      await disk.writeText(at('f'), 'two')
      expect(await disk.readText(at('f'))).toBe('two')
      expect(await disk.list(root)).toEqual(['f'])
    })

    it('SYS-7 replaces and removes a link without its target', async () => {
      await disk.makeDirectory(at('d'), 0o755)
      await disk.link(at('nowhere'), at('l'))
      await disk.link(at('d'), at('l'))
      expect(await disk.kindOf(at('l'))).toBe('link')
      expect(await disk.kindBehind(at('l'))).toBe('directory')
      await disk.removeFile(at('l'))
      expect(await disk.kindOf(at('d'))).toBe('directory')
    })

    it('SYS-7 removes scratch trees recursively', async () => {
      await disk.makeDirectory(at('s', 'deep'), 0o755)
      await disk.writeText(at('s', 'deep', 'f'), 'x')
      await disk.removeScratch(at('s'))
      expect(await disk.kindOf(at('s'))).toBeUndefined()
    })

    it('SYS-7 creates a missing subPath and rejects one that leaves its volume', async () => {
      expect(await disk.makeSubPath(root, 'a/b')).toBe(at('a', 'b'))
      expect(await disk.makeSubPath(root, 'a//b/')).toBe(at('a', 'b'))
      await disk.link('/etc', at('a', 'out'))
      for (const bad of ['a/out', 'a/out/x', '../x', '/etc', 'a/../../x']) {
        await expect(disk.makeSubPath(root, bad)).rejects.toThrow(SubPathError)
      }
    })

    it.skipIf(name === 'host' && skipped)('SYS-7 nothing goes while something is mounted in it', async () => {
      await disk.makeDirectory(at('from'), 0o755)
      await disk.writeText(at('from', 'f'), 'x')
      await disk.bind(at('from'), at('s', 'to'))
      expect(await disk.isMountPoint(at('s', 'to'))).toBe(true)
      expect(await disk.mountsUnder(at('s'))).toEqual([at('s', 'to')])
      await expect(disk.removeScratch(at('s'))).rejects.toThrow(/still mounted/)
      expect(await disk.removeEmptyDirectory(at('s', 'to'))).toBe(false)
      await disk.unmount(at('s', 'to'))
      await disk.removeScratch(at('s'))
      expect(await disk.readText(at('from', 'f'))).toBe('x')
    })
  })
}

describe('subPaths on a real disk', () => {
  it('SYS-7 never leave their volume, regardless of the links it contains', async () => {
    const top = await realpath(await mkdtemp(join(tmpdir(), 'stowage-sub-')))
    const volume = join(top, 'volume')
    await mkdir(join(volume, 'dir', 'inner'), { recursive: true })
    await mkdir(join(top, 'secret'))
    await symlink('../secret', join(volume, 'up'))
    await symlink(join(top, 'secret'), join(volume, 'dir', 'abs'))
    await symlink('inner', join(volume, 'dir', 'near'))
    await writeFile(join(volume, 'file'), '')
    const disk = DISKS.host()
    const part = fc.constantFrom('dir', 'inner', 'up', 'abs', 'near', 'file', 'new', '.', '..', '')
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 5 }), async (parts) => {
        const found = await disk.makeSubPath(volume, parts.join('/')).catch((error) => error)
        if (typeof found === 'string') expect(await realpath(found)).toBe(found)
        if (typeof found === 'string') expect(`${found}/`.startsWith(`${volume}/`)).toBe(true)
        expect(await disk.list(join(top, 'secret'))).toEqual([])
      }),
      { numRuns: 300 },
    )
    await rm(top, { recursive: true, force: true })
  })

  it('SYS-7 inherit owner and mode of their volume', async () => {
    const volume = await realpath(await mkdtemp(join(tmpdir(), 'stowage-sub-')))
    await chmod(volume, 0o2775)
    await mkdir(join(volume, 'there'))
    await chmod(join(volume, 'there'), 0o700)
    const disk = DISKS.host()
    await disk.makeSubPath(volume, 'new/inner')
    await disk.makeSubPath(volume, 'there')
    const modeOf = async (...parts: string[]) => (await stat(join(volume, ...parts))).mode & 0o7777
    expect([await modeOf('new'), await modeOf('new', 'inner')]).toEqual([0o2775, 0o2775])
    expect(await modeOf('there')).toBe(0o700)
    await rm(volume, { recursive: true })
  })

  it('SYS-7 contain no .. part', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          expect(partsOf(text).every((part) => part !== '..' && part !== '' && !part.includes('/'))).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(SubPathError)
        }
      }),
    )
  })
})

describe.skipIf(skipped)(`groups on a real disk${skipped ? ` (${skipped})` : ''}`, () => {
  it('SYS-7 applies group and mode to every file without following links, and skips a finished tree', async () => {
    const root = await mkdtemp(join(tmpdir(), 'stowage-group-'))
    await mkdir(join(root, 'd'), { mode: 0o700 })
    await writeFile(join(root, 'd', 'f'), 'x', { mode: 0o600 })
    const outside = await mkdtemp(join(tmpdir(), 'stowage-outside-'))
    await symlink(outside, join(root, 'l'))
    const { gid: before } = await lstat(outside)
    const disk = DISKS.host()
    await disk.giveToGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: true })
    const facts = async (path: string) => {
      const { gid, mode } = await lstat(path)
      return [gid, (mode & 0o7777).toString(8)]
    }
    expect(await facts(root)).toEqual([4321, '2770'])
    expect(await facts(join(root, 'd'))).toEqual([4321, '2770'])
    expect(await facts(join(root, 'd', 'f'))).toEqual([4321, '660'])
    expect((await lstat(join(root, 'l'))).gid).toBe(4321)
    expect((await lstat(outside)).gid).toBe(before)

    await writeFile(join(root, 'd', 'new'), 'x', { mode: 0o600 })
    await disk.giveToGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: true })
    expect((await facts(join(root, 'd', 'new')))[1]).toBe('600')
    await disk.giveToGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: false })
    expect((await facts(join(root, 'd', 'new')))[1]).toBe('660')
    expect(await readFile(join(root, 'd', 'f'), 'utf8')).toBe('x')
    await rm(root, { recursive: true })
    await rm(outside, { recursive: true })
  })
})
