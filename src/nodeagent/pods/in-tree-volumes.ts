// Prepares hostPath and emptyDir volumes, and removes emptyDir volumes. projected-volumes.ts has the other in-tree volumes.

import type { HostPathVolumeSource } from '../../api/kinds/volume/volume-sources-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { NodeDisk, PathKind } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import { failedMount } from '../volume-error.ts'
import type { ResolvedVolume } from './resolve-volume.ts'

const DIRECTORY_MODE = 0o755
const FILE_MODE = 0o644
const EMPTY_DIR_MODE = 0o777

/** Checks the type of the path, and creates the path if its type requires it. Returns the path. */
export async function prepareHostPath(
  source: Readonly<HostPathVolumeSource>,
  name: string,
  disk: NodeDisk,
): Promise<string> {
  const { path, type = '' } = source
  const typeCheckError = (message: string) =>
    failedMount(`MountVolume.SetUp failed for volume "${name}" : hostPath type check failed: ${path} ${message}`)
  if (!path.startsWith('/')) throw typeCheckError('is not an absolute path')
  if (type === '') return path
  const kind = await disk.kindOfTarget(path)
  if (kind === undefined && type === 'DirectoryOrCreate') await disk.makeDirectory(path, DIRECTORY_MODE)
  else if (kind === undefined && type === 'FileOrCreate') await disk.makeEmptyFile(path, FILE_MODE)
  else if (kind !== KIND_OF_TYPE[type]) throw typeCheckError(`is not a ${KIND_OF_TYPE[type]}`)
  return path
}

const KIND_OF_TYPE: Readonly<Record<string, PathKind>> = {
  DirectoryOrCreate: 'directory',
  Directory: 'directory',
  FileOrCreate: 'file',
  File: 'file',
  Socket: 'socket',
  CharDevice: 'character device',
  BlockDevice: 'block device',
}

export interface EmptyDirDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
}

export async function makeEmptyDir(
  uid: string,
  name: string,
  emptyDir: Extract<ResolvedVolume, { is: 'emptyDir' }>,
  { disk, paths }: EmptyDirDeps,
): Promise<string> {
  const path = paths.emptyDir(uid, name)
  await disk.makeDirectory(path, EMPTY_DIR_MODE)
  if (emptyDir.inMemory) {
    await disk.mountTmpfs(
      path,
      emptyDir.sizeLimit === undefined ? undefined : Number(quantityToBytes(emptyDir.sizeLimit)),
    )
  }
  await disk.setMode(path, emptyDir.mode ?? EMPTY_DIR_MODE)
  return path
}

/** Removes all emptyDir volumes of the pod. */
export async function removeEmptyDirs(uid: string, { disk, paths }: EmptyDirDeps): Promise<void> {
  for (const name of await disk.list(paths.emptyDirs(uid))) {
    const path = paths.emptyDir(uid, name)
    if (await disk.isMountPoint(path)) await disk.unmount(path)
    await disk.removeTree(path)
  }
}
