// Mounts, binds and unmounts. Every call reads the mount table, because mounts outlive the process that created them and
// other programs change them.
import { strict as assert } from 'node:assert'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { deviceNumberOf, formatDeviceNumber, readDevicePath } from './device-number.ts'
import { OccupiedError, stderrMatches } from './errors.ts'
import type { FilesystemType, MountEntry, Mounts } from './host.ts'
import { parseMountInfo } from './mountinfo.ts'
import type { Run } from './run.ts'

export interface MountsDeps {
  readonly run: Run
  readonly mountInfo?: string
}

/** An unmount fails if more mounts are stacked on one path, because another program is probably mounting in a loop. */
const STACKED_MOUNTS_MAX = 64

export function createMounts({ run, mountInfo = '/proc/self/mountinfo' }: MountsDeps): Mounts {
  const list = async () => parseMountInfo(await readFile(mountInfo, 'utf8'))

  const mountAt = async (target: string) => findTopmost(await list(), await resolvePath(target))

  async function mount(
    device: string,
    directory: string,
    type: FilesystemType,
    flags: readonly string[] = [],
    { readOnly = false } = {},
  ): Promise<void> {
    assert(isAbsolute(device) && isAbsolute(directory), 'paths of a mount must be absolute')
    checkMountFlags(flags)
    const existingMount = await mountAt(directory)
    if (existingMount) return checkSameMount(existingMount, device, directory, readOnly)
    // Without --rw, mount(8) mounts a write-protected device read-only and reports success.
    const options = flags.length > 0 ? ['-o', flags.join(',')] : []
    await run('mount', ['-t', type, readOnly ? '--read-only' : '--rw', ...options, device, directory])
  }

  async function bind(source: string, target: string, { readOnly = false } = {}): Promise<void> {
    assert(isAbsolute(source) && isAbsolute(target), 'paths of a mount must be absolute')
    const existingMount = await mountAt(target)
    if (!existingMount) {
      await run('mount', ['--bind', source, target])
    } else if (!(await isSameFile(source, target))) {
      throw new OccupiedError(
        `Cannot bind ${source} at ${target}: ${existingMount.source} is mounted there. Unmount it first.`,
      )
    } else if (!readOnly && existingMount.options.includes('ro') && !(await mountAt(source))?.options.includes('ro')) {
      throw new OccupiedError(
        `Cannot bind ${source} at ${target} for writing: ${source} is bound there read-only. Unmount it first.`,
      )
    }
    if (!readOnly || existingMount?.options.includes('ro')) return
    // Read-only requires a separate remount. After a crash between the two, a retry makes the bind mount read-only.
    try {
      await run('mount', ['-o', 'remount,bind,ro', target])
    } catch (error) {
      await unmount(target, { topmostOnly: true }) // do not leave a writable mount where a read-only one was requested
      throw error
    }
  }

  async function unmount(target: string, { topmostOnly = false } = {}): Promise<void> {
    for (let remainingMounts = STACKED_MOUNTS_MAX; await mountAt(target); remainingMounts--) {
      if (remainingMounts === 0)
        throw new Error(`Cannot unmount ${target}: more than ${STACKED_MOUNTS_MAX} mounts are stacked there.`)
      try {
        await run('umount', [await resolvePath(target)])
      } catch (error) {
        if (!stderrMatches(error, /not mounted|no mount point/)) throw error
        return // unmounted concurrently
      }
      if (topmostOnly) return
    }
  }

  return {
    list,
    mountAt,
    isMountPoint: async (target) => (await mountAt(target)) !== undefined,
    async sourceOf(target) {
      const entry = await mountAt(target)
      if (!entry) return undefined
      // stat fails if the file system has shut down after an error, but the mount table still has its device.
      const node = await stat(target, { bigint: true }).catch(() => undefined)
      return readDevicePath(node?.isBlockDevice() ? formatDeviceNumber(node.rdev) : entry.deviceNumber)
    },
    async mountsOf(device) {
      const node = await stat(device, { bigint: true })
      const number = formatDeviceNumber(node.rdev)
      const nodeFilesystem = formatDeviceNumber(node.dev)
      const isBoundNode = (entry: MountEntry) =>
        entry.deviceNumber === nodeFilesystem && entry.root === `/${basename(device)}`
      return (await list()).filter((entry) => entry.deviceNumber === number || isBoundNode(entry))
    },
    mount,
    bind,
    unmount,
  }
}

/** Each mount on a path is the child of the mount below it, so the topmost is the one that is not a parent. */
function findTopmost(entries: readonly MountEntry[], target: string): MountEntry | undefined {
  const stack = entries.filter((entry) => entry.target === target)
  const parentIds = new Set(stack.map((entry) => entry.parentId))
  return stack.findLast((entry) => !parentIds.has(entry.id)) ?? stack.at(-1)
}

/** Returns the path as in the mount table. Resolves only the parent directory if the path itself cannot be resolved. */
async function resolvePath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = await realpath(dirname(path)).catch(() => dirname(path))
    return join(parent, basename(path))
  }
}

async function checkSameMount(
  existingMount: MountEntry,
  device: string,
  directory: string,
  readOnly: boolean,
): Promise<void> {
  if (existingMount.deviceNumber !== (await deviceNumberOf(device))) {
    throw new OccupiedError(
      `Cannot mount ${device} at ${directory}: ${existingMount.source} is mounted there. Unmount it first.`,
    )
  }
  if (existingMount.options.includes('ro') === readOnly) return
  const [currentMode, requestedMode] = readOnly ? ['for writing', 'read-only'] : ['read-only', 'for writing']
  throw new OccupiedError(
    `Cannot mount ${device} at ${directory} ${requestedMode}: ${device} is mounted there ${currentMode}. Unmount it first.`,
  )
}

async function isSameFile(pathA: string, pathB: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(pathA, { bigint: true }), stat(pathB, { bigint: true })])
  if (a.isBlockDevice() || b.isBlockDevice()) return a.isBlockDevice() && b.isBlockDevice() && a.rdev === b.rdev
  return a.dev === b.dev && a.ino === b.ino
}

/** Mount options of a StorageClass must not turn the mount into another operation or name another device. */
function checkMountFlags(flags: readonly string[]): void {
  for (const flag of flags.flatMap((value) => value.split(','))) {
    const name = flag.split('=')[0]!.trim().toLowerCase()
    if (FORBIDDEN_FLAGS.has(name) || name.startsWith('x-') || /[\s\0]/.test(flag)) {
      throw new Error(`The mount option "${flag}" is not allowed for a volume. Remove it from the mount options.`)
    }
  }
}

const FORBIDDEN_FLAGS = new Set([
  ...['bind', 'rbind', 'move', 'remount', 'loop', 'offset', 'sizelimit', 'helper', 'uhelper', 'fstab'],
  ...['logdev', 'rtdev', 'journal_dev', 'journal_path'],
  ...['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable'],
])
