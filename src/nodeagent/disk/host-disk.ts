// NodeDisk on the machine's files and mounts. Without root only operations that mount fail, with a clear message. Writes
// are not flushed: the records describe mounts, which do not survive a power loss either.

import type { Stats } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import { readTextIfPresent } from '../../base/files.ts'
import type { Mounts } from '../../host/index.ts'
import type { Run } from '../../host/run.ts'
import type { NodeDisk, PathKind } from './disk.ts'
import { giveToGroup } from './group.ts'
import { makeSubPath, withSubPath } from './sub-path.ts'

const RECORD_MODE = 0o600

export interface HostDiskDeps {
  readonly mounts: Mounts
  readonly run: Run
}

export function createHostDisk({ mounts, run }: HostDiskDeps): NodeDisk {
  async function mountsUnder(path: string): Promise<string[]> {
    const real = await realpath(path).catch(() => path)
    const targets = (await mounts.list()).map(({ target }) => target)
    return targets.filter((target) => target === real || target.startsWith(`${real}/`))
  }

  return {
    async makeDirectory(path, mode) {
      await mkdir(path, { recursive: true, mode })
    },
    kindOf: async (path) => kindOf(await lstat(path).catch(ifAbsent)),
    kindBehind: async (path) => kindOf(await stat(path).catch(ifAbsent)),
    list: async (path) => ((await readdir(path).catch(ifAbsent)) ?? []).sort(),
    readText: readTextIfPresent,
    async writeText(path, text) {
      const temporary = `${path}.tmp`
      await writeFile(temporary, text, { mode: RECORD_MODE })
      await rename(temporary, path)
    },
    async makeEmptyFile(path, mode) {
      const file = await open(path, 'a', mode)
      await file.close()
    },
    async removeFile(path) {
      await unlink(path).catch(ifAbsent)
    },
    async removeEmptyDirectory(path) {
      try {
        await rmdir(path)
        return true
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException
        if (code === 'ENOENT') return true
        if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOTDIR'].includes(code)) return false
        throw error
      }
    },
    async removeScratch(path) {
      if ((await lstat(path).catch(ifAbsent)) === undefined) return
      const [mounted] = await mountsUnder(path)
      if (mounted !== undefined) throw new Error(`Cannot remove ${path}: something is still mounted at ${mounted}.`)
      await rm(path, { recursive: true, force: true })
    },
    setMode: chmod,
    async link(target, path) {
      if ((await readlink(path).catch(ifNoLink)) === target) return
      const temporary = `${path}.new`
      await rm(temporary, { force: true })
      await symlink(target, temporary)
      await rename(temporary, path)
    },

    isMountPoint: mounts.isMountPoint,
    mountsUnder,
    async bind(from, to, options) {
      await makeBindTarget(from, to)
      await mounts.bind(from, to, options)
    },
    async mountMemory(path, sizeBytes) {
      if (await mounts.isMountPoint(path)) return
      const size = sizeBytes === undefined ? [] : ['-o', `size=${sizeBytes}`]
      await run('mount', ['-t', 'tmpfs', ...size, 'tmpfs', path])
    },
    unmount: mounts.unmount,
    giveToGroup,
    makeSubPath,
    async bindSubPath(root, subPath, to) {
      if (await mounts.isMountPoint(to)) return
      await withSubPath(root, subPath, async (opened) => {
        const from = `/proc/${process.pid}/fd/${opened.fd}`
        await makeBindTarget(from, to)
        // mount must not resolve the path again.
        await run('mount', ['--no-canonicalize', '--bind', from, to])
      })
    },
  }
}

/** Bind mounts need a directory for a directory and a file for anything else. */
async function makeBindTarget(from: string, to: string): Promise<void> {
  if (await lstat(to).catch(ifAbsent)) return
  if ((await stat(from)).isDirectory()) await mkdir(to, { recursive: true, mode: 0o750 })
  else {
    await mkdir(dirname(to), { recursive: true, mode: 0o750 })
    await writeFile(to, '', { flag: 'a' })
  }
}

function kindOf(found: Stats | undefined): PathKind | undefined {
  if (!found) return undefined
  if (found.isDirectory()) return 'directory'
  if (found.isFile()) return 'file'
  if (found.isSymbolicLink()) return 'link'
  if (found.isSocket()) return 'socket'
  if (found.isBlockDevice()) return 'block device'
  return found.isCharacterDevice() ? 'character device' : 'other'
}

function ifAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
  throw error
}

function ifNoLink(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'EINVAL') return undefined
  throw error
}
