// A backend with directories as volumes, for a driver that cannot mount or attach devices. Publishing creates a symlink. Sizes
// and IO limits are not enforced.
import { mkdir, readlink, rename, rmdir, stat, symlink, unlink } from 'node:fs/promises'
import { removeTree } from '../../base/trees/remove-tree.ts'
import { copyTree } from '../../host/copy-tree.ts'
import type { Files, Usage } from '../../host/index.ts'
import type { Run } from '../../host/run.ts'
import { asSentence, failedPrecondition, formatSize, withFullStop } from '../errors.ts'
import type { SnapshotId, VolumeId } from '../ids.ts'
import { contentPathOf, pathIfExists } from '../pool/pool-layout.ts'
import type { Publication, VolumeRecord } from '../pool/records.ts'
import type { Backend, Contents, NodeOperations } from './backend.ts'

export interface DirectoryBackendDeps {
  readonly files: Pick<Files, 'syncDirectory'>
  readonly usage: Usage
  readonly run: Run
  readonly pool: string
  /** The reason why the loop backend is not used. */
  readonly message: string
}

const VOLUME_BYTES_MIN = 1
const NO_LIMITS = 'The volume is a directory and has no device that could be limited.'

export function createDirectoryBackend(deps: DirectoryBackendDeps): Backend {
  return {
    name: 'directory',
    limitsUnsupportedReason: `${NO_LIMITS} ${withFullStop(deps.message)}`,
    limitations: [
      `Volumes are directories of the pool: ${withFullStop(deps.message)}`,
      'The sizes of volumes are not enforced.',
      `Volumes with iops or throughput are rejected. ${NO_LIMITS}`,
      'Block volumes, separate file systems and read-only publishing are not supported.',
      'Snapshots and clones are copied file by file while the volume may be written to.',
    ],
    defaultFsType: 'xfs',
    allocatesOnCreate: false,
    growsOnNode: false,
    checkSupport({ accessType, isReadOnly }) {
      if (accessType === 'block')
        return { available: false, message: `Block volumes need the loop backend. ${asSentence(deps.message)}` }
      if (isReadOnly) return { available: false, message: `A symlink cannot be read-only. ${asSentence(deps.message)}` }
      return { available: true }
    },
    minimumBytes: () => VOLUME_BYTES_MIN,
    contents: createContents(deps),
    node: createNode(deps),
  }
}

function createContents({ files, usage, run, pool }: DirectoryBackendDeps): Contents {
  const createDirectory = async (id: VolumeId | SnapshotId) => {
    await mkdir(contentPathOf(pool, id), { recursive: true, mode: 0o777 })
    await files.syncDirectory(contentPathOf(pool, id))
  }
  /** Copies to `<target>.part` and renames it, so that `target` is always complete. */
  const copyContent = async (source: string, target: string) => {
    if (await exists(target)) throw new Error(`Cannot copy ${source} to ${target}: the target exists. Move it away.`)
    const partialPath = `${target}.part`
    await removeTree(partialPath)
    await mkdir(partialPath)
    try {
      await copyTree(source, partialPath, { run })
    } catch (error) {
      await removeTree(partialPath)
      throw error
    }
    await rename(partialPath, target)
    await files.syncDirectory(target)
  }
  /** Renames the directory to `<id>.gone` first, so that its remains can be recognized after a crash. */
  const remove = async (id: VolumeId | SnapshotId) => {
    const path = contentPathOf(pool, id)
    if (await exists(path)) {
      await removeTree(`${path}.gone`)
      await rename(path, `${path}.gone`)
    }
    for (const leftoverPath of [`${path}.gone`, `${path}.part`]) await removeTree(leftoverPath)
  }

  const findDamage = async (id: VolumeId | SnapshotId, kind: string) => {
    const path = contentPathOf(pool, id)
    if (await exists(path)) return undefined
    return `The directory ${path} of the ${kind} is missing in the pool. Restore it from a backup, or delete the ${kind}.`
  }

  return {
    create: (volume) => createDirectory(volume.id),
    copy: (source, volume) => copyContent(contentPathOf(pool, source.id), contentPathOf(pool, volume.id)),
    async snapshot(volume, _staging, snapshot) {
      await copyContent(contentPathOf(pool, volume.id), contentPathOf(pool, snapshot.id))
      return { allocatedBytes: (await usage.measureDirectory(contentPathOf(pool, snapshot.id))).usedBytes }
    },
    async grow() {}, // only the record has the size
    removeVolume: remove,
    removeSnapshot: remove,
    allocatedBytes: async (id) =>
      (await exists(contentPathOf(pool, id))) ? (await usage.measureDirectory(contentPathOf(pool, id))).usedBytes : 0,
    find: (id) => pathIfExists(contentPathOf(pool, id)),
    findDamage: ({ id }) => findDamage(id, 'volume'),
    findSnapshotDamage: ({ id }) => findDamage(id, 'snapshot'),
    async findProblem(volume) {
      const damage = await findDamage(volume.id, 'volume')
      if (damage) return damage
      const { usedBytes } = await usage.measureDirectory(contentPathOf(pool, volume.id))
      if (usedBytes > volume.capacityBytes) {
        return `The volume contains ${formatSize(usedBytes)}, more than its size of ${formatSize(volume.capacityBytes)}, which a directory cannot prevent. Delete some of the data, or expand the volume.`
      }
      return undefined
    },
  }
}

function createNode({ usage, pool }: DirectoryBackendDeps): NodeOperations {
  const isLinked = async (volume: VolumeRecord, { path }: Pick<Publication, 'path'>) =>
    (await readlink(path).catch(() => undefined)) === contentPathOf(pool, volume.id)

  return {
    async stage(volume, _staging, { save }) {
      if (volume.isUnused || volume.needsNewUuid)
        await save({ ...volume, isUnused: undefined, needsNewUuid: undefined })
    },
    async unstage() {},
    isStaged: async () => true,
    async publish(volume, _staging, publication) {
      if (await isLinked(volume, publication)) return
      await rmdir(publication.path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return // some callers create the last path element, others do not
        throw failedPrecondition(
          `The volume cannot be published at ${publication.path}: the path is not an empty directory. Remove it, or use another path.`,
        )
      })
      await symlink(contentPathOf(pool, volume.id), publication.path)
    },
    async unpublish(volume, path) {
      if (await isLinked(volume, { path })) await unlink(path)
    },
    isPublished: isLinked,
    async findMountPaths(volume, mountRecord) {
      const paths = []
      for (const publication of mountRecord?.published ?? []) {
        if (await isLinked(volume, publication)) paths.push(publication.path)
      }
      return paths
    },
    grow: async () => ({ is: 'grown' }),
    async usage(volume) {
      const [tree, disk] = [
        await usage.measureDirectory(contentPathOf(pool, volume.id)),
        await usage.measureFilesystem(pool),
      ]
      const total = volume.capacityBytes
      const available = Math.max(0, Math.min(total - tree.usedBytes, disk.availableBytes))
      return { bytes: { total, used: tree.usedBytes, available } }
    },
    limit: async () => ({ is: 'not enforced', message: NO_LIMITS }),
    io: async () => undefined,
    async recover(volumes, mountRecords) {
      const recoveredRecords = []
      for (const mountRecord of mountRecords) {
        const volume = volumes.find((candidate) => candidate.id === mountRecord.id)
        if (!volume) continue
        const activePublications = []
        for (const candidate of mountRecord.published)
          if (await isLinked(volume, candidate)) activePublications.push(candidate)
        recoveredRecords.push({ ...mountRecord, published: activePublications })
      }
      return { mountRecords: recoveredRecords, notes: [], warnings: [] }
    },
  }
}

const exists = async (path: string): Promise<boolean> => {
  try {
    await stat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
