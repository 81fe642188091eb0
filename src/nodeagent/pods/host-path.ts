// Checks and prepares the paths of the node's own file system that pods mount: hostPath volumes, and PVs of type hostPath and
// local. After all links are resolved, a path must be in a directory that the operator allows (--allow-host-path).
import { dirname } from 'node:path'
import type { HostPathVolumeSource } from '../../api/kinds/volume/volume-sources-schema.ts'
import { isWithin } from '../../base/trees/resolve-path.ts'
import type { NodeDisk, PathKind } from '../disk/disk.ts'
import { mountError } from '../volume-error.ts'

const FILE_MODE = 0o644

export interface HostPathDeps {
  readonly disk: NodeDisk
  /** Directories whose files and subdirectories pods may mount. */
  readonly allowedHostPaths: readonly string[]
}

/** Checks the path and its type, and creates the path if its type requires it. Returns the path without links. */
export async function prepareHostPath(
  source: Readonly<HostPathVolumeSource>,
  name: string,
  { disk, allowedHostPaths }: HostPathDeps,
): Promise<string> {
  const { type = '' } = source
  const error = (message: string) => mountError(`MountVolume.SetUp failed for volume "${name}" : ${message}`)
  const typeCheckError = (message: string) => error(`hostPath type check failed: ${source.path} ${message}`)
  if (!source.path.startsWith('/')) throw typeCheckError('is not an absolute path')
  const path = await disk.resolvePath(source.path)
  if (!(await isAllowed(path, { disk, allowedHostPaths }))) {
    const target = path === source.path ? '' : `, which is ${path},`
    throw error(
      `hostPath ${source.path}${target} is not allowed on this node. Use another kind of volume, or start the node with --allow-host-path ${path}`,
    )
  }
  if (type === '') return path
  const kind = await disk.kindOf(path)
  if (kind === undefined && type === 'DirectoryOrCreate') await disk.makeSubPath('/', path.slice(1))
  else if (kind === undefined && type === 'FileOrCreate') await createFile(path, disk)
  else if (kind !== KIND_OF_TYPE[type]) throw typeCheckError(`is not a ${KIND_OF_TYPE[type]}`)
  return path
}

async function isAllowed(path: string, { disk, allowedHostPaths }: HostPathDeps): Promise<boolean> {
  for (const allowedPath of allowedHostPaths) {
    const directory = await disk.resolvePath(allowedPath)
    if (isWithin(path, directory)) return true
  }
  return false
}

async function createFile(path: string, disk: NodeDisk): Promise<void> {
  if ((await disk.kindOf(dirname(path))) !== 'directory') throw new Error(`${dirname(path)} is not a directory`)
  await disk.makeEmptyFile(path, FILE_MODE)
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
