// Makes, grows, freezes and renumbers file systems. A file system is made only where there is nothing, and never with
// force: mkfs.ext4 without a terminal overwrites what it finds and calls that success.
import { mkdir, rmdir } from 'node:fs/promises'
import { isZero, readContent, readStart, START_BYTES, zeroStart } from './content.ts'
import { FrozenError, NotBlankError, ProgramFailedError } from './errors.ts'
import type { DeviceContent, Filesystems, FilesystemType, Growth, MakeOptions, Mounts } from './host.ts'
import { keyedLock } from './keyed-lock.ts'
import type { Run } from './run.ts'
import { filesystemBytes, SUPERBLOCK_BYTES } from './superblock.ts'

export interface FilesystemsDeps {
  readonly run: Run
  readonly mounts: Mounts
}

const MIB = 1024 * 1024

/** mkfs.xfs refuses less; an ext4 of 4 KiB blocks has no journal below 8 MiB, and little room for files below this. */
const MINIMUM_BYTES: Readonly<Record<FilesystemType, number>> = { xfs: 300 * MIB, ext4: 16 * MIB }

export const minimumBytes = (type: FilesystemType): number => MINIMUM_BYTES[type]

/** e2fsck's answers that mean the file system is sound now: nothing found, or all of it repaired. */
const SOUND = [0, 1]

export function createFilesystems({ run, mounts }: FilesystemsDeps): Filesystems {
  const probe = (device: string) => readContent(run, device)
  const withLock = keyedLock()

  async function make(device: string, type: FilesystemType, options: MakeOptions): Promise<void> {
    // What nobody was given, and has nothing where every file system begins, needs no second witness.
    const isUntouched = options.wasInterrupted === true && isZero(await readStart(device, START_BYTES))
    if (!isUntouched) await mustBeBlank(device, type, options)
    await run(...makeCommand(device, type, options))
  }

  async function mustBeBlank(device: string, type: FilesystemType, options: MakeOptions): Promise<void> {
    let content = await probe(device)
    if (options.wasInterrupted && isRemainsOfMake(content, type)) {
      await zeroStart(device)
      content = await probe(device)
    }
    if (content.is !== 'blank') throw notBlank(device, type, content)
  }

  async function grow(device: string, mountpoint: string | undefined, type: FilesystemType): Promise<Growth> {
    if (type === 'xfs') return mountpoint === undefined ? xfsNeedsMount : growMountedXfs(mountpoint)
    return mountpoint === undefined ? growUnmountedExt4(device) : growMountedExt4(device)
  }

  async function growMountedXfs(mountpoint: string): Promise<Growth> {
    await mustBeMountPoint(mountpoint, 'grow')
    await run('xfs_growfs', [mountpoint])
    return { is: 'grown' }
  }

  async function growMountedExt4(device: string): Promise<Growth> {
    try {
      await run('resize2fs', [device])
      return { is: 'grown' }
    } catch (error) {
      if (error instanceof ProgramFailedError && /permission (denied )?to resize/i.test(error.stderr))
        return ext4NeedsUnmount
      throw error
    }
  }

  async function growUnmountedExt4(device: string): Promise<Growth> {
    await run('e2fsck', ['-f', '-p', device], { okCodes: SOUND })
    await run('resize2fs', [device])
    return { is: 'grown' }
  }

  async function freeze(mountpoint: string): Promise<void> {
    await mustBeMountPoint(mountpoint, 'freeze')
    try {
      await run('fsfreeze', ['--freeze', mountpoint])
    } catch (error) {
      if (complains(error, /busy/i)) {
        throw new FrozenError(
          `The file system at ${mountpoint} is frozen already, and not by this driver. Thaw it (fsfreeze --unfreeze ${mountpoint}) and ask again.`,
        )
      }
      await thaw(mountpoint) // it may have come to it nevertheless
      throw error
    }
  }

  async function thaw(mountpoint: string): Promise<void> {
    if (!(await mounts.isMountPoint(mountpoint))) return
    try {
      await run('fsfreeze', ['--unfreeze', mountpoint])
    } catch (error) {
      if (!complains(error, /invalid argument/i)) throw error // so it says of one that is not frozen
    }
  }

  /** On a plain directory these calls reach the file system it lies on: at worst the node's own root, frozen. */
  async function mustBeMountPoint(path: string, verb: string): Promise<void> {
    if (await mounts.isMountPoint(path)) return
    throw new Error(`Cannot ${verb} the file system at ${path}: nothing is mounted there.`)
  }

  return {
    probe,
    make,
    grow,
    async sizeBytes(device, type) {
      return filesystemBytes(await readStart(device, SUPERBLOCK_BYTES), type)
    },
    whileFrozen: (mountpoint, work) =>
      withLock(mountpoint, async () => {
        await freeze(mountpoint)
        try {
          return await work()
        } finally {
          await thaw(mountpoint)
        }
      }),
    thaw,
    async newUuid(device, type, scratch) {
      if (type !== 'xfs') return
      // A copy taken while its original was mounted has an unsettled log, and xfs_admin refuses such a one.
      await mkdir(scratch, { recursive: true })
      try {
        await mounts.mount(device, scratch, type, ['nouuid'])
      } finally {
        await mounts.unmount(scratch)
        await rmdir(scratch)
      }
      await run('xfs_admin', ['-U', 'generate', device])
    },
  }
}

/** A make that was cut short leaves its own kind of file system, or bytes without a name. */
const isRemainsOfMake = (content: DeviceContent, type: FilesystemType) =>
  content.is === 'filesystem' ? content.type === type : content.is === 'unclear'

function makeCommand(device: string, type: FilesystemType, options: MakeOptions): [string, string[]] {
  const label = options.label === undefined ? [] : ['-L', options.label]
  if (type === 'xfs') return ['mkfs.xfs', ['-q', ...(options.keepReservation ? ['-K'] : []), ...label, device]]
  // 4 KiB blocks always: below 512 MiB it would choose 1 KiB and keep them when the volume grows. No blocks set aside
  // for root: the volume is its user's.
  const extended = options.keepReservation ? ['-E', 'nodiscard'] : []
  return ['mkfs.ext4', ['-q', '-b', '4096', '-m', '0', ...extended, ...label, device]]
}

function notBlank(device: string, type: FilesystemType, content: DeviceContent): NotBlankError {
  const what =
    content.is === 'filesystem' ? `it holds ${content.type}` : content.is === 'unclear' ? content.because : ''
  return new NotBlankError(
    `Cannot make ${type} on ${device}: ${what}. Nothing was written. Save what is there, or use a new volume.`,
  )
}

const complains = (error: unknown, about: RegExp) => error instanceof ProgramFailedError && about.test(error.stderr)

const xfsNeedsMount: Growth = { is: 'needs mount', because: 'xfs grows only while it is mounted' }

const ext4NeedsUnmount: Growth = {
  is: 'needs unmount',
  because: 'growing a mounted ext4 needs CAP_SYS_RESOURCE, which the driver does not have; it grows at the next stage',
}
