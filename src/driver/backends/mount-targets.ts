// Staging and target paths of loop volumes: what is mounted at them, and how to prepare and clean them up. Anything that
// does not belong to the volume is never changed.
import { lstat, mkdir, open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { MountEntry, Mounts } from '../../host/host.ts'
import { failedPrecondition } from '../errors.ts'
import type { AccessType } from '../pool/records.ts'

export type TargetState =
  | { readonly is: 'nothing' }
  /** A mount of one of the volume's devices, or a bind mount of its node. */
  | { readonly is: 'ours'; readonly device: string }
  | { readonly is: 'other'; readonly entry: MountEntry; readonly isDeviceNode: boolean }

/** `devices` returns the devices of the volume; it is called only if something is mounted at the path. */
export async function inspectTarget(
  mounts: Mounts,
  path: string,
  devices: () => Promise<readonly string[]>,
): Promise<TargetState> {
  const entry = await mounts.at(path)
  if (!entry) return { is: 'nothing' }
  const device = await mounts.sourceOf(path)
  if (device !== undefined && (await devices()).includes(device)) return { is: 'ours', device }
  return { is: 'other', entry, isDeviceNode: device !== undefined && entry.root === `/${basename(device)}` }
}

export const occupied = (path: string, { source, type }: MountEntry, id: string) =>
  failedPrecondition(
    `${source} (${type}) is mounted at ${path}, and that is not volume ${id}. Nothing was changed. Unmount it, or use another path.`,
  )

/**
 * Unmounts these devices from the top of the stack and stops at the first other mount. `mayBeStale`: according to the
 * record, a device node of the volume was bound there, and its loop number may have been reused since.
 */
export async function unmountOurs(
  mounts: Mounts,
  path: string,
  { id, devices, mayBeStale = false }: { id: string; devices: readonly string[]; mayBeStale?: boolean },
): Promise<{ readonly unmounted: readonly string[]; readonly isFree: boolean }> {
  const unmounted: string[] = []
  for (;;) {
    const there = await inspectTarget(mounts, path, async () => devices)
    if (there.is === 'nothing') return { unmounted, isFree: true }
    if (there.is === 'other' && !(mayBeStale && there.isDeviceNode)) {
      await requireNotCovered(mounts, path, { id, devices })
      return { unmounted, isFree: false }
    }
    await mounts.unmount(path, { topmostOnly: true })
    if (there.is === 'ours') unmounted.push(there.device)
  }
}

/** Fails if a foreign mount covers the volume at this path. */
export async function requireNotCovered(
  mounts: Mounts,
  path: string,
  { id, devices }: { id: string; devices: readonly string[] },
): Promise<void> {
  const there = await inspectTarget(mounts, path, async () => devices)
  if (there.is !== 'other') return
  const { target, source, type } = there.entry
  for (const device of devices) {
    if (!(await mounts.mountsOf(device)).some((entry) => entry.target === target)) continue
    throw failedPrecondition(`${source} (${type}) is mounted over volume ${id} at ${path}. Unmount it first.`)
  }
}

/** Ensures an empty directory, or an empty file for a device node. Returns whether it was created; fails for anything else. */
export async function prepareTarget(path: string, accessType: AccessType): Promise<boolean> {
  const known = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (known) {
    const why = await unsuitable(path, accessType)
    if (why)
      throw failedPrecondition(`The volume cannot be published at ${path}: ${why} Remove it, or use another path.`)
    return false
  }
  if (accessType === 'mount') await mkdir(path, { recursive: true })
  else await (await open(path, 'a', 0o660)).close()
  return true
}

async function unsuitable(path: string, accessType: AccessType): Promise<string | undefined> {
  const found = await stat(path)
  if (accessType === 'block') {
    if (!found.isFile()) return 'it is not a file, which a block volume needs.'
    return found.size === 0 ? undefined : 'the file is not empty, and the device would hide its data.'
  }
  if (!found.isDirectory()) return 'it is not a directory.'
  return (await readdir(path)).length === 0
    ? undefined
    : 'the directory is not empty, and the volume would hide its content.'
}

/** Removes only what a publish creates: an empty directory or an empty file. */
export async function removeTarget(path: string): Promise<void> {
  const known = await lstat(path).catch(() => undefined)
  if (known?.isFile() && known.size === 0) await rm(path, { force: true })
  if (!known?.isDirectory()) return
  await rmdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error // no longer empty: keep it
  })
}
