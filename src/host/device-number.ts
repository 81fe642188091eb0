// Device numbers: a packed integer in stat(2), `major:minor` in /proc, /sys and cgroups.
import { readlink, stat } from 'node:fs/promises'
import { basename } from 'node:path'

/** Unpacks `dev` or `rdev` of stat; the bits of major and minor are interleaved. */
export function formatDeviceNumber(packed: bigint): string {
  const major = ((packed >> 8n) & 0xfffn) | ((packed >> 32n) & 0xfffff000n)
  const minor = (packed & 0xffn) | ((packed >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/** The number of a device node: `/dev/loop3` → `7:3`. */
export async function deviceNumberOf(device: string): Promise<string> {
  const { rdev } = await stat(device, { bigint: true })
  return formatDeviceNumber(rdev)
}

/** The node of a block device number: `7:3` → `/dev/loop3`; undefined if the device does not exist. */
export async function deviceOf(number: string, sysDevBlock = '/sys/dev/block'): Promise<string | undefined> {
  try {
    return `/dev/${basename(await readlink(`${sysDevBlock}/${number}`))}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** For `.catch` after deviceNumberOf: undefined if the device does not exist. */
export function noSuchDevice(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
