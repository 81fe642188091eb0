// Mounts, binds and unmounts, and what is mounted where. The kernel's table is read anew for every question: mounts
// outlive the process that made them, and others make some too.
import { strict as assert } from 'node:assert'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { deviceNumberOf, deviceOf, formatDeviceNumber } from './device-number.ts'
import { OccupiedError, ProgramFailedError } from './errors.ts'
import type { FilesystemType, MountEntry, Mounts } from './host.ts'
import { parseMountInfo } from './mountinfo.ts'
import type { Run } from './run.ts'

export interface MountsDeps {
  readonly run: Run
  readonly mountInfo?: string
}

/** More mounts than this on one path are somebody's runaway loop, and we say so instead of joining it. */
const STACKED_MOUNTS_MAX = 64

export function createMounts({ run, mountInfo = '/proc/self/mountinfo' }: MountsDeps): Mounts {
  const list = async () => parseMountInfo(await readFile(mountInfo, 'utf8'))

  const at = async (target: string) => uppermost(await list(), await resolvePath(target))

  async function mount(
    device: string,
    directory: string,
    type: FilesystemType,
    flags: readonly string[] = [],
    { readOnly = false } = {},
  ): Promise<void> {
    assert(isAbsolute(device) && isAbsolute(directory), 'mounts are told by absolute paths')
    refuseFlagsThatDoMore(flags)
    const there = await at(directory)
    if (there) return checkSameMount(there, device, directory, readOnly)
    // --rw: without it a device that turns out to be write-protected is mounted read-only, and that counts as success.
    const options = flags.length > 0 ? ['-o', flags.join(',')] : []
    await run('mount', ['-t', type, readOnly ? '--read-only' : '--rw', ...options, device, directory])
  }

  async function bind(from: string, to: string, { readOnly = false } = {}): Promise<void> {
    assert(isAbsolute(from) && isAbsolute(to), 'mounts are told by absolute paths')
    const there = await at(to)
    if (!there) {
      await run('mount', ['--bind', from, to])
    } else if (!(await isSameThing(from, to))) {
      throw new OccupiedError(`Cannot bind ${from} at ${to}: ${there.source} is mounted there. Unmount it first.`)
    } else if (!readOnly && there.options.includes('ro') && !(await at(from))?.options.includes('ro')) {
      throw new OccupiedError(
        `Cannot bind ${from} at ${to} for writing: it is bound there read-only. Unmount it first.`,
      )
    }
    if (!readOnly || there?.options.includes('ro')) return
    // Its own step, as the kernel has it: a bind that a crash left writable is made read-only by the repeat.
    try {
      await run('mount', ['-o', 'remount,bind,ro', to])
    } catch (error) {
      await unmount(to, { uppermostOnly: true }) // a writable view must not stay where a read-only one was asked for
      throw error
    }
  }

  async function unmount(target: string, { uppermostOnly = false } = {}): Promise<void> {
    for (let mountsLeft = STACKED_MOUNTS_MAX; await at(target); mountsLeft--) {
      if (mountsLeft === 0)
        throw new Error(`Cannot unmount ${target}: more than ${STACKED_MOUNTS_MAX} mounts lie there.`)
      try {
        await run('umount', [await resolvePath(target)])
      } catch (error) {
        const isGoneMeanwhile = error instanceof ProgramFailedError && /not mounted|no mount point/.test(error.stderr)
        if (!isGoneMeanwhile) throw error
        return
      }
      if (uppermostOnly) return
    }
  }

  return {
    list,
    at,
    isMountPoint: async (target) => (await at(target)) !== undefined,
    async sourceOf(target) {
      const entry = await at(target)
      if (!entry) return undefined
      // A file system that died answers no questions, but the table still names its device.
      const node = await stat(target, { bigint: true }).catch(() => undefined)
      return deviceOf(node?.isBlockDevice() ? formatDeviceNumber(node.rdev) : entry.deviceNumber)
    },
    async mountsOf(device) {
      const node = await stat(device, { bigint: true })
      const number = formatDeviceNumber(node.rdev)
      const nodeLiesOn = formatDeviceNumber(node.dev)
      const isBoundNode = (entry: MountEntry) =>
        entry.deviceNumber === nodeLiesOn && entry.root === `/${basename(device)}`
      return (await list()).filter((entry) => entry.deviceNumber === number || isBoundNode(entry))
    },
    mount,
    bind,
    unmount,
  }
}

/** Of several mounts on one path, each lies on the one that is its parent: the uppermost is no one's parent. */
function uppermost(entries: readonly MountEntry[], target: string): MountEntry | undefined {
  const stack = entries.filter((entry) => entry.target === target)
  const covered = new Set(stack.map((entry) => entry.parentId))
  return stack.findLast((entry) => !covered.has(entry.id)) ?? stack.at(-1)
}

/** As the kernel lists it. If the path itself cannot be looked at, because its file system died, its parent can. */
async function resolvePath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = await realpath(dirname(path)).catch(() => dirname(path))
    return join(parent, basename(path))
  }
}

async function checkSameMount(there: MountEntry, device: string, directory: string, readOnly: boolean): Promise<void> {
  if (there.deviceNumber !== (await deviceNumberOf(device))) {
    throw new OccupiedError(
      `Cannot mount ${device} at ${directory}: ${there.source} is mounted there. Unmount it first.`,
    )
  }
  if (there.options.includes('ro') === readOnly) return
  const [is, wanted] = readOnly ? ['for writing', 'read-only'] : ['read-only', 'for writing']
  throw new OccupiedError(
    `Cannot mount ${device} at ${directory} ${wanted}: it is mounted there ${is}. Unmount it first.`,
  )
}

async function isSameThing(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one, { bigint: true }), stat(other, { bigint: true })])
  if (a.isBlockDevice() || b.isBlockDevice()) return a.isBlockDevice() && b.isBlockDevice() && a.rdev === b.rdev
  return a.dev === b.dev && a.ino === b.ino
}

/** A mount flag from a class is an option of this one mount; these would make it another operation or another device. */
function refuseFlagsThatDoMore(flags: readonly string[]): void {
  for (const flag of flags.flatMap((it) => it.split(','))) {
    const name = flag.split('=')[0]!.trim().toLowerCase()
    if (OTHER_OPERATIONS.has(name) || name.startsWith('x-') || /[\s\0]/.test(flag)) {
      throw new Error(`The mount flag "${flag}" cannot be used for a volume. Remove it from the mount options.`)
    }
  }
}

const OTHER_OPERATIONS = new Set([
  ...['bind', 'rbind', 'move', 'remount', 'loop', 'offset', 'sizelimit', 'helper', 'uhelper', 'fstab'],
  ...['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable'],
])
