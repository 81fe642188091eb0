// The built-in directory provisioner. A volume is a directory with the name of the volume, directly below a root
// directory. Its size is not limited, and it is reachable only from the node on which the provisioner runs.
//   <root>/pvc-1             a volume
//   <root>/.deleting-pvc-1   a volume being deleted; the deletion is resumed after a crash
//   <root>/.archived-pvc-1   a volume deleted with onDelete: archive, which the provisioner never changes again
//   <root>/.stowage-volumes  the mark that identifies this root (root-identity.ts)
import { lstat, mkdir, open, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describeDiskError, errorCode } from '../../../base/disk-error.ts'
import { syncDirectory } from '../../../base/files.ts'
import { type Logger, silentLog } from '../../../base/log.ts'
import { DIRECTORY_ONLY } from '../../../base/trees/open-entry.ts'
import { removeTree } from '../../../base/trees/remove-tree.ts'
import { defineProvisioner } from '../plugin/check-plugin.ts'
import type { AnyProvisionerPlugin, ExistingVolume, ProvisionedVolume } from '../plugin/contract.ts'
import { InfeasibleError, NotCreatedError, RescheduleError } from '../plugin/failures.ts'
import { parameter } from '../plugin/parameter.ts'
import { openRoot, type Root } from './root.ts'
import { directoryOf, volumeNameAt } from './volume-directory.ts'

export const DIRECTORY_PROVISIONER = 'stowage.dev/directory'

export interface DirectoryPluginOptions {
  /** The path of the root directory, which is created if it does not exist, or an open root. */
  readonly root: string | Root
  /** The kubernetes.io/hostname of the node on which the provisioner runs. If set, volumes are restricted to that node. */
  readonly node?: string
  readonly log?: Logger
}

const DELETING_PREFIX = '.deleting-'
const ARCHIVED_PREFIX = '.archived-'
/** Copied from the class to the volume, because the class may be deleted before the volume. */
const ON_DELETE_ANNOTATION = 'directory.stowage.dev/on-delete'

const PARAMETERS = {
  mode: parameter.text({
    doc: "the directory's permissions",
    pattern: /^[0-3]?7[0-7]{2}$/,
    expected:
      'three octal digits with all permissions for the owner, such as 0770 or 0777, with a leading 2 for setgid or 1 for sticky',
    default: '0770',
  }),
  onDelete: parameter.choice(['delete', 'archive'], {
    doc: 'whether to delete or keep the files of a deleted volume',
    default: 'delete',
  }),
}

export async function openDirectoryPlugin(options: DirectoryPluginOptions): Promise<AnyProvisionerPlugin> {
  const { node, log = silentLog } = options
  const root = typeof options.root === 'string' ? await openRoot(options.root) : options.root

  const volumeAt = (path: string, sizeBytes: bigint, onDelete: string): ProvisionedVolume => ({
    sizeBytes,
    source: { hostPath: { path, type: 'Directory' } },
    annotations: { [ON_DELETE_ANNOTATION]: onDelete },
    ...(node ? { reachableFrom: [{ 'kubernetes.io/hostname': node }] } : {}),
  })

  await removeLeftovers(root.path, log)

  return defineProvisioner({
    name: DIRECTORY_PROVISIONER,
    parameters: PARAMETERS,
    accessModes: ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'],
    topologyKeys: node ? ['kubernetes.io/hostname'] : [],

    async provision({ volumeName, sizeBytes, parameters, selectedNode }) {
      if (node && selectedNode && selectedNode !== node) {
        throw new RescheduleError(
          `Directories are created on the node "${node}" only, but the selected node is "${selectedNode}".`,
        )
      }
      const path = directoryOf(root.path, volumeName)
      if (!path) throw new InfeasibleError(`${JSON.stringify(volumeName)} cannot be the name of a volume directory.`)
      await root.check()
      await createDirectory(path, Number.parseInt(parameters.mode, 8))
      await syncDirectory(root.path)
      return volumeAt(path, sizeBytes, parameters.onDelete)
    },

    async find({ volumeName, sizeBytes }) {
      const path = directoryOf(root.path, volumeName)
      if (!path) return undefined
      await root.check()
      return (await isDirectory(path)) ? volumeAt(path, sizeBytes, 'delete') : undefined // the volume is not in use yet
    },

    async delete(volume, { signal }) {
      const name = nameOf(volume)
      if (!name) throw new Error(`The path of the volume is not ${root.path}/<volume name>. Nothing was changed.`)
      await root.check()
      const prefix = volume.annotations[ON_DELETE_ANNOTATION] === 'archive' ? ARCHIVED_PREFIX : DELETING_PREFIX
      const movedPath = await moveDirectory(root.path, name, prefix, signal)
      if (prefix === DELETING_PREFIX) await removeTree(movedPath, signal)
      await syncDirectory(root.path)
    },

    owns: (volume) => nameOf(volume) !== undefined,
  })

  /** Returns undefined unless the directory has the volume's name: a PV must not refer to the data of another. */
  function nameOf({ name, source }: ExistingVolume): string | undefined {
    const directoryName = source.hostPath && volumeNameAt(root.path, source.hostPath.path)
    return directoryName === name ? directoryName : undefined
  }
}

/** Creates the directory or reuses the directory of an earlier attempt. */
async function createDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw new NotCreatedError(describeDiskError('create', path, error))
  }
  try {
    const directory = await open(path, DIRECTORY_ONLY)
    try {
      await directory.chmod(mode) // exact, regardless of the umask
      await directory.sync()
    } finally {
      await directory.close()
    }
  } catch (error) {
    if (['ENOTDIR', 'ELOOP'].includes(errorCode(error))) {
      throw new InfeasibleError(`${path} exists and is not a directory. Remove it if it is not needed.`)
    }
    throw new Error(describeDiskError('prepare', path, error))
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    await (await open(path, DIRECTORY_ONLY)).close()
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) return false
    throw new Error(describeDiskError('read', path, error))
  }
}

/** Renames the directory atomically, unless it was renamed before, and returns its new path. */
async function moveDirectory(root: string, name: string, prefix: string, signal: AbortSignal): Promise<string> {
  const path = join(root, name)
  const newPath = join(root, `${prefix}${name}`)
  if (!(await isDirectory(path))) {
    await rejectNonDirectory(path)
    return newPath
  }
  if (prefix === DELETING_PREFIX) await removeTree(newPath, signal) // the remains of an earlier volume of that name
  try {
    await rename(path, newPath)
  } catch (error) {
    if (prefix === ARCHIVED_PREFIX && ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(errorCode(error))) {
      throw new Error(`Cannot archive ${path}: ${newPath} already exists. Move it elsewhere.`)
    }
    throw new Error(describeDiskError('rename', path, error))
  }
  await syncDirectory(root)
  return newPath
}

/** Rejects a link or a file in place of the directory, which this provisioner did not create. */
async function rejectNonDirectory(path: string): Promise<void> {
  const stats = await lstat(path).catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined
    throw new Error(describeDiskError('read', path, error))
  })
  if (stats)
    throw new Error(
      `${path} is ${stats.isSymbolicLink() ? 'a link' : 'not a directory'}. Nothing was changed; remove it if it is not needed.`,
    )
}

/** Finishes the deletions of a crashed process. Their PVs may no longer exist, so no reconcile would finish them. */
async function removeLeftovers(root: string, log: Logger): Promise<void> {
  for (const name of await readdir(root)) {
    if (!name.startsWith(DELETING_PREFIX)) continue
    try {
      await removeTree(join(root, name))
    } catch (error) {
      log.warn(
        { err: error, path: join(root, name) },
        'cannot remove the directory of a deleted volume; the removal is retried at the next start',
      )
    }
  }
}
