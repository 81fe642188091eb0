// Volumes without a driver: hostPath, checked and created by its type, and emptyDir.

import type { HostPathVolumeSource } from '../../api/kinds/volume/volume-sources-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { NodeDisk, PathKind } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import { failedMount } from '../volume-problem.ts'
import type { ResolvedVolume } from './resolve-volume.ts'

const DIRECTORY_MODE = 0o755
const FILE_MODE = 0o644
const SCRATCH_MODE = 0o777

/** Checks the path's type and creates it if the type requires it. */
export async function hostPathOf(
  source: Readonly<HostPathVolumeSource>,
  name: string,
  disk: NodeDisk,
): Promise<string> {
  const { path, type = '' } = source
  const failed = (because: string) =>
    failedMount(`MountVolume.SetUp failed for volume "${name}" : hostPath type check failed: ${path} ${because}`)
  if (!path.startsWith('/')) throw failed('is not an absolute path')
  if (type === '') return path
  const kind = await disk.kindBehind(path)
  if (kind === undefined && type === 'DirectoryOrCreate') await disk.makeDirectory(path, DIRECTORY_MODE)
  else if (kind === undefined && type === 'FileOrCreate') await disk.makeEmptyFile(path, FILE_MODE)
  else if (kind !== KINDS[type]) throw failed(`is not a ${KINDS[type]}`)
  return path
}

const KINDS: Readonly<Record<string, PathKind>> = {
  DirectoryOrCreate: 'directory',
  Directory: 'directory',
  FileOrCreate: 'file',
  File: 'file',
  Socket: 'socket',
  CharDevice: 'character device',
  BlockDevice: 'block device',
}

export interface ScratchDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
}

export async function makeEmptyDir(
  uid: string,
  name: string,
  wanted: Extract<ResolvedVolume, { is: 'emptyDir' }>,
  { disk, paths }: ScratchDeps,
): Promise<string> {
  const path = paths.emptyDir(uid, name)
  await disk.makeDirectory(path, SCRATCH_MODE)
  if (wanted.inMemory) {
    await disk.mountMemory(path, wanted.sizeLimit === undefined ? undefined : Number(quantityToBytes(wanted.sizeLimit)))
  }
  await disk.setMode(path, wanted.mode ?? SCRATCH_MODE)
  return path
}

/** Removes all emptyDir volumes of the pod. */
export async function removeEmptyDirs(uid: string, { disk, paths }: ScratchDeps): Promise<void> {
  for (const name of await disk.list(paths.emptyDirs(uid))) {
    const path = paths.emptyDir(uid, name)
    if (await disk.isMountPoint(path)) await disk.unmount(path)
    await disk.removeScratch(path)
  }
}
