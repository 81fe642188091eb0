// NodeDisk on the files and mounts of the machine. Operations that mount or change a group need root privileges. Writes are
// not synced to disk: the records describe mounts, which do not survive a power loss either.

import type { Stats } from 'node:fs'
import {
  chmod,
  chown,
  lstat,
  mkdir,
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
import { basename, dirname } from 'node:path'
import { readTextIfPresent } from '../../base/files.ts'
import { removeTree } from '../../base/trees/remove-tree.ts'
import { resolvePath } from '../../base/trees/resolve-path.ts'
import type { Mounts } from '../../host/index.ts'
import type { Run } from '../../host/run.ts'
import { measureTree } from '../../host/usage.ts'
import type { NodeDisk, PathKind } from './disk.ts'
import { applyFsGroup } from './fs-group.ts'
import { createFile, makeSubPath, withSubPath } from './sub-path.ts'

const RECORD_MODE = 0o600

export interface HostDiskDeps {
  readonly mounts: Mounts
  readonly run: Run
}

export function createHostDisk({ mounts, run }: HostDiskDeps): NodeDisk {
  async function mountsUnder(path: string): Promise<string[]> {
    const realPath = await realpath(path).catch(() => path)
    const targets = (await mounts.list()).map(({ target }) => target)
    return targets.filter((target) => target === realPath || target.startsWith(`${realPath}/`))
  }

  return {
    async makeDirectory(path, mode) {
      await mkdir(path, { recursive: true, mode })
    },
    kindOf: async (path) => kindOf(await lstat(path).catch(ignoreNotFound)),
    kindOfTarget: async (path) => kindOf(await stat(path).catch(ignoreNotFound)),
    resolvePath,
    list: async (path) => ((await readdir(path).catch(ignoreNotFound)) ?? []).sort(),
    readText: readTextIfPresent,
    async writeText(path, text) {
      const temporary = `${path}.tmp`
      await writeFile(temporary, text, { mode: RECORD_MODE })
      await rename(temporary, path)
    },
    async writeFile(path, content, mode, user) {
      const temporary = `${path}.tmp`
      await writeFile(temporary, content, { mode: RECORD_MODE })
      if (user !== undefined) await chown(temporary, user, -1)
      await chmod(temporary, mode) // exact, regardless of the umask
      await rename(temporary, path)
    },
    async makeEmptyFile(path, mode) {
      await withSubPath('/', dirname(path).slice(1), (directory) => createFile(directory, basename(path), mode))
    },
    async removeFile(path) {
      await unlink(path).catch(ignoreNotFound)
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
    async removeTree(path) {
      if ((await lstat(path).catch(ignoreNotFound)) === undefined) return
      const [mountPoint] = await mountsUnder(path)
      if (mountPoint !== undefined)
        throw new Error(`Cannot remove ${path}: a volume is still mounted at ${mountPoint}.`)
      await removeTree(path)
    },
    setMode: chmod,
    async link(target, path) {
      if ((await readlink(path).catch(ignoreNoLink)) === target) return
      const temporary = `${path}.new`
      await rm(temporary, { force: true })
      await symlink(target, temporary)
      await rename(temporary, path)
    },

    isMountPoint: mounts.isMountPoint,
    mountsUnder,
    async bind(source, target, options) {
      await makeBindTarget(source, target)
      await mounts.bind(source, target, options)
    },
    async mountTmpfs(path, sizeBytes) {
      if (await mounts.isMountPoint(path)) return
      const size = sizeBytes === undefined ? [] : ['-o', `size=${sizeBytes}`]
      await run('mount', ['-t', 'tmpfs', ...size, 'tmpfs', path])
    },
    unmount: mounts.unmount,
    measureUsage: async (path) => (await measureTree(path)).usedBytes,
    applyFsGroup,
    makeSubPath,
    async bindSubPath(root, subPath, target) {
      if (await mounts.isMountPoint(target)) return
      await withSubPath(root, subPath, async (file) => {
        const source = `/proc/${process.pid}/fd/${file.fd}`
        await makeBindTarget(source, target)
        // Without this option, mount would resolve the path again.
        await run('mount', ['--no-canonicalize', '--bind', source, target])
      })
    },
  }
}

/** Creates the target of a bind mount: a directory for a directory, a file for anything else. */
async function makeBindTarget(source: string, target: string): Promise<void> {
  if (await lstat(target).catch(ignoreNotFound)) return
  if ((await stat(source)).isDirectory()) await mkdir(target, { recursive: true, mode: 0o750 })
  else {
    await mkdir(dirname(target), { recursive: true, mode: 0o750 })
    await writeFile(target, '', { flag: 'a' })
  }
}

function kindOf(stats: Stats | undefined): PathKind | undefined {
  if (!stats) return undefined
  if (stats.isDirectory()) return 'directory'
  if (stats.isFile()) return 'file'
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isSocket()) return 'socket'
  if (stats.isBlockDevice()) return 'block device'
  return stats.isCharacterDevice() ? 'character device' : 'other'
}

function ignoreNotFound(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
  throw error
}

function ignoreNoLink(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'EINVAL') return undefined
  throw error
}
