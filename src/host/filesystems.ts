// Formats, grows and freezes file systems, and assigns new UUIDs to copies. Only blank devices, and the remains of an interrupted
// format, are formatted. The check is done here, because without a terminal mkfs.ext4 overwrites an existing file system
// without confirmation.
import { mkdir, open, rmdir } from 'node:fs/promises'
import { keyedLock } from '../base/keyed-lock.ts'
import { isZero, readContent, readStart, START_BYTES } from './device-content.ts'
import { FrozenError, NotBlankError, stderrMatches } from './errors.ts'
import type { DeviceContent, Filesystems, FilesystemType, FormatOptions, Growth, Mounts } from './host.ts'
import type { Run } from './run.ts'
import { filesystemBytes, SUPERBLOCK_BYTES } from './superblock.ts'

export interface FilesystemsDeps {
  readonly run: Run
  readonly mounts: Mounts
}

const MIB = 1024 * 1024

/** mkfs.xfs requires 300 MiB. ext4 with 4 KiB blocks has no journal below 8 MiB, and needs some more space for files. */
const MINIMUM_BYTES: Readonly<Record<FilesystemType, number>> = { xfs: 300 * MIB, ext4: 16 * MIB }

export const minimumBytes = (type: FilesystemType): number => MINIMUM_BYTES[type]

/** Exit codes of e2fsck if it found no errors or repaired all of them. */
const E2FSCK_OK_CODES = [0, 1]

export function createFilesystems({ run, mounts }: FilesystemsDeps): Filesystems {
  const probe = (device: string) => readContent(run, device)
  const withLock = keyedLock()

  async function format(device: string, type: FilesystemType, options: FormatOptions): Promise<void> {
    // A volume that was never used and starts with zeros needs no blkid.
    const isUntouched = options.wasInterrupted === true && isZero(await readStart(device, START_BYTES))
    if (!isUntouched) await requireBlank(device, type, options)
    await run(...formatCommand(device, type, options))
  }

  async function requireBlank(device: string, type: FilesystemType, options: FormatOptions): Promise<void> {
    const content = await probe(device)
    if (!options.wasInterrupted || !isInterruptedFormat(content, type)) {
      if (content.is !== 'blank') throw notBlankError(device, type, content, 'Nothing was written.')
      return
    }
    await eraseStart(device)
    const remainingContent = await probe(device)
    if (remainingContent.is === 'blank') return
    const change = `The first ${START_BYTES} bytes were overwritten, because a format was interrupted before.`
    throw notBlankError(device, type, remainingContent, change)
  }

  async function grow(device: string, mountpoint: string | undefined, type: FilesystemType): Promise<Growth> {
    if (type === 'xfs') return mountpoint === undefined ? xfsNeedsMount : growMountedXfs(mountpoint)
    return mountpoint === undefined ? growUnmountedExt4(device) : growMountedExt4(device)
  }

  async function growMountedXfs(mountpoint: string): Promise<Growth> {
    await requireMountPoint(mountpoint, 'grow')
    await run('xfs_growfs', [mountpoint])
    return { is: 'grown' }
  }

  async function growMountedExt4(device: string): Promise<Growth> {
    try {
      await run('resize2fs', [device])
      return { is: 'grown' }
    } catch (error) {
      if (stderrMatches(error, /permission (denied )?to resize/i)) return ext4NeedsUnmount
      throw error
    }
  }

  async function growUnmountedExt4(device: string): Promise<Growth> {
    await run('e2fsck', ['-f', '-p', device], { okCodes: E2FSCK_OK_CODES })
    await run('resize2fs', [device])
    return { is: 'grown' }
  }

  async function freeze(mountpoint: string): Promise<void> {
    await requireMountPoint(mountpoint, 'freeze')
    try {
      await run('fsfreeze', ['--freeze', mountpoint])
    } catch (error) {
      if (stderrMatches(error, /busy/i)) {
        throw new FrozenError(
          `The file system at ${mountpoint} was frozen by another program. Thaw it (fsfreeze --unfreeze ${mountpoint}) and retry.`,
        )
      }
      await thaw(mountpoint) // the file system may be frozen despite the error
      throw error
    }
  }

  async function thaw(mountpoint: string): Promise<void> {
    if (!(await mounts.isMountPoint(mountpoint))) return
    try {
      await run('fsfreeze', ['--unfreeze', mountpoint])
    } catch (error) {
      if (!stderrMatches(error, /invalid argument/i)) throw error // "invalid argument" means that it is not frozen
    }
  }

  /** For a plain directory, these programs act on the file system that contains it, for example the root file system. */
  async function requireMountPoint(path: string, verb: string): Promise<void> {
    if (await mounts.isMountPoint(path)) return
    throw new Error(`Cannot ${verb} the file system at ${path}: nothing is mounted there.`)
  }

  return {
    probe,
    format,
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
    async assignNewUuid(device, type, scratch) {
      if (type !== 'xfs') return
      // A copy of a mounted file system has a dirty log, which xfs_admin rejects. Mounting it replays the log.
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

/** Returns whether an interrupted mkfs may have left the content: a file system of its type, or unrecognizable data. */
const isInterruptedFormat = (content: DeviceContent, type: FilesystemType) =>
  content.is === 'filesystem' ? content.type === type : content.is === 'unclear'

function formatCommand(device: string, type: FilesystemType, options: FormatOptions): [string, string[]] {
  const label = options.label === undefined ? [] : ['-L', options.label]
  if (type === 'xfs') return ['mkfs.xfs', ['-q', ...(options.keepReservation ? ['-K'] : []), ...label, device]]
  // Always 4 KiB blocks: below 512 MiB the default is 1 KiB, which would remain when the volume grows. No blocks are
  // reserved for root, because the volume belongs to its user.
  const extendedOptions = options.keepReservation ? ['-E', 'nodiscard'] : []
  return ['mkfs.ext4', ['-q', '-b', '4096', '-m', '0', ...extendedOptions, ...label, device]]
}

/** `change` is a sentence about what was written to the device. */
function notBlankError(device: string, type: FilesystemType, content: DeviceContent, change: string): NotBlankError {
  const reason =
    content.is === 'filesystem' ? `it contains ${content.type}` : content.is === 'unclear' ? content.message : ''
  return new NotBlankError(
    `Cannot format ${device} with ${type}: ${reason}. ${change} Save the existing data, or use a new volume.`,
  )
}

const xfsNeedsMount: Growth = { is: 'needs mount', message: 'xfs can be grown only while it is mounted' }

const ext4NeedsUnmount: Growth = {
  is: 'needs unmount',
  message:
    'growing a mounted ext4 requires CAP_SYS_RESOURCE, which the driver does not have; it grows when next staged',
}

/** Overwrites the start of a device with zeros. */
async function eraseStart(device: string): Promise<void> {
  const file = await open(device, 'r+')
  try {
    await file.write(Buffer.alloc(START_BYTES), 0, START_BYTES, 0)
    await file.sync()
  } finally {
    await file.close()
  }
}
