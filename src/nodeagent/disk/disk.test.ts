// The contract of NodeDisk, run against both implementations. Tests that mount need permission to mount.
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { systemClock } from '../../base/clock.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import { type NodeDisk, SubPathError } from './disk.ts'
import { createHostDisk } from './host-disk.ts'
import { createMemoryDisk } from './memory-disk.ts'

const run = createRun({ clock: systemClock() })
const mounts = createMounts({ run })
const skipMessage = skipReason(await probeThisMachine(), ['mount'])

const DISKS = { host: () => createHostDisk({ mounts, run }), memory: () => createMemoryDisk() }

for (const [name, createDisk] of Object.entries(DISKS)) {
  describe(`the ${name} disk`, () => {
    let root: string
    let disk: NodeDisk
    beforeEach(async () => {
      disk = createDisk()
      root = name === 'host' ? await realpath(await mkdtemp(join(tmpdir(), 'stowage-disk-'))) : '/root'
      await disk.makeDirectory(root, 0o755)
    })
    afterEach(async () => {
      if (name === 'host') await rm(root, { recursive: true, force: true })
    })
    const pathOf = (...segments: string[]) => join(root, ...segments)

    it('reports missing paths as absent and removes them without error', async () => {
      expect(await disk.kindOf(pathOf('x'))).toBeUndefined()
      expect(await disk.list(pathOf('x'))).toEqual([])
      expect(await disk.readText(pathOf('x'))).toBeUndefined()
      await disk.removeFile(pathOf('x'))
      await disk.removeTree(pathOf('x'))
      expect(await disk.removeEmptyDirectory(pathOf('x'))).toBe(true)
    })

    it('creates directories with parents and removes only empty ones', async () => {
      await disk.makeDirectory(pathOf('a', 'b'), 0o750)
      await disk.makeDirectory(pathOf('a', 'b'), 0o750)
      await disk.writeText(pathOf('a', 'b', 'f'), 'text')
      expect(await disk.list(pathOf('a'))).toEqual(['b'])
      expect(await disk.removeEmptyDirectory(pathOf('a', 'b'))).toBe(false)
      expect(await disk.readText(pathOf('a', 'b', 'f'))).toBe('text')
      await disk.removeFile(pathOf('a', 'b', 'f'))
      expect(await disk.removeEmptyDirectory(pathOf('a', 'b'))).toBe(true)
      expect(await disk.kindOf(pathOf('a', 'b'))).toBeUndefined()
    })

    it('replaces a file and requires its directory to exist', async () => {
      await expect(disk.writeText(pathOf('no', 'f'), 'x')).rejects.toMatchObject({ code: 'ENOENT' })
      await disk.writeText(pathOf('f'), 'one')
      await disk.writeText(pathOf('f'), 'two')
      expect(await disk.readText(pathOf('f'))).toBe('two')
      expect(await disk.list(root)).toEqual(['f'])
    })

    it('replaces and removes a link, but not its target', async () => {
      await disk.makeDirectory(pathOf('d'), 0o755)
      await disk.link(pathOf('missing'), pathOf('l'))
      await disk.link(pathOf('d'), pathOf('l'))
      expect(await disk.kindOf(pathOf('l'))).toBe('link')
      expect(await disk.kindOfTarget(pathOf('l'))).toBe('directory')
      await disk.removeFile(pathOf('l'))
      expect(await disk.kindOf(pathOf('d'))).toBe('directory')
    })

    it('removes scratch trees recursively', async () => {
      await disk.makeDirectory(pathOf('s', 'deep'), 0o755)
      await disk.writeText(pathOf('s', 'deep', 'f'), 'x')
      await disk.removeTree(pathOf('s'))
      expect(await disk.kindOf(pathOf('s'))).toBeUndefined()
    })

    it('resolves links, and creates a file only in a path without links', async () => {
      await disk.makeDirectory(pathOf('d'), 0o755)
      await disk.link(pathOf('d'), pathOf('l'))
      expect(await disk.resolvePath(pathOf('l', 'new', 'f'))).toBe(pathOf('d', 'new', 'f'))
      await disk.makeEmptyFile(pathOf('d', 'f'), 0o644)
      await disk.makeEmptyFile(pathOf('d', 'f'), 0o644)
      expect(await disk.readText(pathOf('d', 'f'))).toBe('')
      await expect(disk.makeEmptyFile(pathOf('l', 'g'), 0o644)).rejects.toThrow(SubPathError)
      expect(await disk.list(pathOf('d'))).toEqual(['f'])
    })

    it('creates a missing subPath and rejects one outside the volume', async () => {
      expect(await disk.makeSubPath(root, 'a/b')).toBe(pathOf('a', 'b'))
      expect(await disk.makeSubPath(root, 'a//b/')).toBe(pathOf('a', 'b'))
      await disk.link('/etc', pathOf('a', 'out'))
      for (const subPath of ['a/out', 'a/out/x', '../x', '/etc', 'a/../../x']) {
        await expect(disk.makeSubPath(root, subPath)).rejects.toThrow(SubPathError)
      }
    })

    it.skipIf(name === 'host' && skipMessage)('does not remove a directory that contains a mount point', async () => {
      await disk.makeDirectory(pathOf('from'), 0o755)
      await disk.writeText(pathOf('from', 'f'), 'x')
      await disk.bind(pathOf('from'), pathOf('s', 'to'))
      expect(await disk.isMountPoint(pathOf('s', 'to'))).toBe(true)
      expect(await disk.mountsUnder(pathOf('s'))).toEqual([pathOf('s', 'to')])
      await expect(disk.removeTree(pathOf('s'))).rejects.toThrow(/still mounted/)
      expect(await disk.removeEmptyDirectory(pathOf('s', 'to'))).toBe(false)
      await disk.unmount(pathOf('s', 'to'))
      await disk.removeTree(pathOf('s'))
      expect(await disk.readText(pathOf('from', 'f'))).toBe('x')
    })
  })
}
