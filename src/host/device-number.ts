// Converts device numbers: they are packed integers in stat(2), and `major:minor` in /proc, /sys and cgroups.
import { readlink, stat } from 'node:fs/promises'
import { basename } from 'node:path'

/** Unpacks `dev` or `rdev` of stat, in which the bits of major and minor are interleaved. */
export function formatDeviceNumber(packed: bigint): string {
  const major = ((packed >> 8n) & 0xfffn) | ((packed >> 32n) & 0xfffff000n)
  const minor = (packed & 0xffn) | ((packed >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/** Returns the number of a device node: `7:3` for `/dev/loop3`. */
export async function deviceNumberOf(device: string): Promise<string> {
  const { rdev } = await stat(device, { bigint: true })
  return formatDeviceNumber(rdev)
}

/** Returns the node of a block device: `/dev/loop3` for `7:3`, or undefined if the device does not exist. */
export async function readDevicePath(number: string, sysDevBlock = '/sys/dev/block'): Promise<string | undefined> {
  try {
    return `/dev/${basename(await readlink(`${sysDevBlock}/${number}`))}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A handler for `.catch` after deviceNumberOf. Returns undefined if the device does not exist. */
export function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
