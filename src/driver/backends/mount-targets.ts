// Inspects, prepares and cleans up the staging and target paths of loop volumes.
import { lstat, mkdir, open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { MountEntry, Mounts } from '../../host/host.ts'
import { failedPrecondition } from '../errors.ts'
import type { AccessType } from '../pool/records.ts'

export type TargetState =
  | { readonly is: 'nothing' }
  /** A device of the volume is mounted, or its node is bound. */
  | { readonly is: 'volume'; readonly device: string }
  | { readonly is: 'other'; readonly entry: MountEntry; readonly isDeviceNode: boolean }

/** Returns what is mounted at the path. `devices` returns the devices of the volume. It is called only if necessary. */
export async function inspectTarget(
  mounts: Mounts,
  path: string,
  devices: () => Promise<readonly string[]>,
): Promise<TargetState> {
  const entry = await mounts.mountAt(path)
  if (!entry) return { is: 'nothing' }
  const device = await mounts.sourceOf(path)
  if (device !== undefined && (await devices()).includes(device)) return { is: 'volume', device }
  return { is: 'other', entry, isDeviceNode: device !== undefined && entry.root === `/${basename(device)}` }
}

export const occupiedError = (path: string, { source, type }: MountEntry, id: string) =>
  failedPrecondition(
    `${source} (${type}) is mounted at ${path}, and is not volume ${id}. Nothing was changed. Unmount ${source}, or use another path.`,
  )

/**
 * Unmounts these devices from the top of the stack and stops at the first other mount. With `mayBeStale`, it also unmounts
 * any device node: the record has a device node of the volume there, whose loop number may have been reused.
 */
export async function unmountVolume(
  mounts: Mounts,
  path: string,
  { id, devices, mayBeStale = false }: { id: string; devices: readonly string[]; mayBeStale?: boolean },
): Promise<{ readonly unmountedDevices: readonly string[]; readonly isFree: boolean }> {
  const unmountedDevices: string[] = []
  for (;;) {
    const target = await inspectTarget(mounts, path, async () => devices)
    if (target.is === 'nothing') return { unmountedDevices, isFree: true }
    if (target.is === 'other' && !(mayBeStale && target.isDeviceNode)) {
      await requireNotCovered(mounts, path, { id, devices })
      return { unmountedDevices, isFree: false }
    }
    await mounts.unmount(path, { topmostOnly: true })
    if (target.is === 'volume') unmountedDevices.push(target.device)
  }
}

/** Throws if another mount covers the volume at this path. */
export async function requireNotCovered(
  mounts: Mounts,
  path: string,
  { id, devices }: { id: string; devices: readonly string[] },
): Promise<void> {
  const state = await inspectTarget(mounts, path, async () => devices)
  if (state.is !== 'other') return
  const { target, source, type } = state.entry
  for (const device of devices) {
    if (!(await mounts.mountsOf(device)).some((entry) => entry.target === target)) continue
    throw failedPrecondition(`${source} (${type}) is mounted over volume ${id} at ${path}. Unmount ${source} first.`)
  }
}

/** Creates the directory, or the file for a device node, if it is missing, and returns whether it did so. */
export async function prepareTarget(path: string, accessType: AccessType): Promise<boolean> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (stats) {
    const problem = await findTargetProblem(path, accessType)
    if (problem)
      throw failedPrecondition(`The volume cannot be published at ${path}: ${problem} Remove it, or use another path.`)
    return false
  }
  if (accessType === 'mount') await mkdir(path, { recursive: true })
  else await (await open(path, 'a', 0o660)).close()
  return true
}

async function findTargetProblem(path: string, accessType: AccessType): Promise<string | undefined> {
  const stats = await stat(path)
  if (accessType === 'block') {
    if (!stats.isFile()) return 'the path is not a file, which a block volume needs.'
    return stats.size === 0 ? undefined : 'the file is not empty, and the device would hide its data.'
  }
  if (!stats.isDirectory()) return 'the path is not a directory.'
  return (await readdir(path)).length === 0
    ? undefined
    : 'the directory is not empty, and the volume would hide its content.'
}

/** Removes an empty directory or an empty file, as a publish creates it. Does not remove other content. */
export async function removeTarget(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined)
  if (stats?.isFile() && stats.size === 0) await rm(path, { force: true })
  if (!stats?.isDirectory()) return
  await rmdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error // a directory that is no longer empty is not removed
  })
}
