// The paths a caller names for mounts of a volume: what is there already, and undoing what is ours there and nothing
// else. A path that holds anything not known to be of the volume is refused or left exactly as it is.
import { lstat, mkdir, open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { MountEntry, Mounts } from '../../host/host.ts'
import { notNow } from '../errors.ts'
import type { AccessType } from '../pool/records.ts'

export type Occupant =
  | { readonly is: 'nothing' }
  /** A mount of one of the volume's devices, or the node of one. */
  | { readonly is: 'ours'; readonly device: string }
  | { readonly is: 'other'; readonly entry: MountEntry; readonly isDeviceNode: boolean }

/** `devices`: those of the volume, asked for only if something is mounted there. */
export async function occupantOf(
  mounts: Mounts,
  path: string,
  devices: () => Promise<readonly string[]>,
): Promise<Occupant> {
  const entry = await mounts.at(path)
  if (!entry) return { is: 'nothing' }
  const device = await mounts.sourceOf(path)
  if (device !== undefined && (await devices()).includes(device)) return { is: 'ours', device }
  return { is: 'other', entry, isDeviceNode: device !== undefined && entry.root === `/${basename(device)}` }
}

export const occupied = (path: string, { source, type }: MountEntry, id: string) =>
  notNow(
    `${source} (${type}) is mounted at ${path}, and that is not volume ${id}. Nothing was changed. Unmount it, or name another path.`,
  )

/**
 * Takes away mounts of these devices from the top, and stops at the first that is none. `mayBeStale`: a record says
 * that a device node of the volume was bound there, and its number may have gone to another file since.
 */
export async function unmountOurs(
  mounts: Mounts,
  path: string,
  { id, devices, mayBeStale = false }: { id: string; devices: readonly string[]; mayBeStale?: boolean },
): Promise<{ readonly unmounted: readonly string[]; readonly isFree: boolean }> {
  const unmounted: string[] = []
  for (;;) {
    const there = await occupantOf(mounts, path, async () => devices)
    if (there.is === 'nothing') return { unmounted, isFree: true }
    if (there.is === 'other' && !(mayBeStale && there.isDeviceNode)) {
      await mustNotBeCovered(mounts, path, { id, devices })
      return { unmounted, isFree: false }
    }
    await mounts.unmount(path, { uppermostOnly: true })
    if (there.is === 'ours') unmounted.push(there.device)
  }
}

/** What lies over the volume is somebody else's, and to get at the volume it would have to go first. */
export async function mustNotBeCovered(
  mounts: Mounts,
  path: string,
  { id, devices }: { id: string; devices: readonly string[] },
): Promise<void> {
  const there = await occupantOf(mounts, path, async () => devices)
  if (there.is !== 'other') return
  const { target, source, type } = there.entry
  for (const device of devices) {
    if (!(await mounts.mountsOf(device)).some((entry) => entry.target === target)) continue
    throw notNow(`${source} (${type}) is mounted over volume ${id} at ${path}. Unmount it first.`)
  }
}

/** An empty directory, or an empty file for a device node; true if it was made here. Whatever else is there is refused. */
export async function prepareTarget(path: string, accessType: AccessType): Promise<boolean> {
  const known = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (known) {
    const why = await objectionTo(path, accessType)
    if (why) throw notNow(`The volume cannot be published at ${path}: ${why} Remove it, or name another path.`)
    return false
  }
  if (accessType === 'mount') await mkdir(path, { recursive: true })
  else await (await open(path, 'a', 0o660)).close()
  return true
}

async function objectionTo(path: string, accessType: AccessType): Promise<string | undefined> {
  const found = await stat(path)
  if (accessType === 'block') {
    if (!found.isFile()) return 'it is not a file, and a device is published as one.'
    return found.size === 0 ? undefined : 'there is a file with data, which the device would hide.'
  }
  if (!found.isDirectory()) return 'it is not a directory.'
  return (await readdir(path)).length === 0 ? undefined : 'the directory is not empty, and the volume would hide that.'
}

/** Only what a publish makes goes: an empty directory or an empty file. */
export async function removeTarget(path: string): Promise<void> {
  const known = await lstat(path).catch(() => undefined)
  if (known?.isFile() && known.size === 0) await rm(path, { force: true })
  if (!known?.isDirectory()) return
  await rmdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error // someone has put something there since
  })
}
