// The layout of a pool. File names are derived only from ids.
//   volumes/<id>.img, snapshots/<id>.img     loop backend
//   volumes/<id>/,    snapshots/<id>/        directory backend
//   .stowage/                                records and other state of the driver
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isSnapshotId, isVolumeId, type SnapshotId, type VolumeId } from '../ids.ts'

export const volumesIn = (pool: string) => join(pool, 'volumes')
export const snapshotsIn = (pool: string) => join(pool, 'snapshots')
export const stateIn = (pool: string) => join(pool, '.stowage')
/** The directory in which a copied file system is mounted once to give it a new UUID. */
export const scratchIn = (pool: string, id: VolumeId) => join(stateIn(pool), 'scratch', id)

export const contentPathOf = (pool: string, id: VolumeId | SnapshotId): string =>
  join(isVolumeId(id) ? volumesIn(pool) : snapshotsIn(pool), id)
export const imagePathOf = (pool: string, id: VolumeId | SnapshotId): string =>
  `${contentPathOf(pool, id)}${IMAGE_EXTENSION}`

const IMAGE_EXTENSION = '.img'
/** The extensions of unfinished copies and of directories that are being deleted. */
const UNFINISHED_EXTENSIONS = ['.part', '.gone']

/** Returns the path if it exists, otherwise undefined. */
export async function pathIfExists(path: string): Promise<string | undefined> {
  try {
    await lstat(path)
    return path
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export interface UnrecordedContent {
  readonly path: string
  /** The id in the name of a volume or snapshot whose record was lost. */
  readonly id?: VolumeId | SnapshotId
}

/** Finds content without a record: remains of unfinished operations, which can be deleted, and other content. */
export async function findUnrecorded(
  pool: string,
  isKnown: (id: string) => boolean,
): Promise<{ readonly leftovers: readonly string[]; readonly unknownContent: readonly UnrecordedContent[] }> {
  const leftovers: string[] = []
  const unknownContent: UnrecordedContent[] = []
  for (const directory of [volumesIn(pool), snapshotsIn(pool)]) {
    for (const file of await readdir(directory)) {
      const unfinishedExtension = UNFINISHED_EXTENSIONS.find((extension) => file.endsWith(extension))
      const name = unfinishedExtension ? file.slice(0, -unfinishedExtension.length) : file
      const id = name.endsWith(IMAGE_EXTENSION) ? name.slice(0, -IMAGE_EXTENSION.length) : name
      const path = join(directory, file)
      const isContentId = isVolumeId(id) || isSnapshotId(id)
      if (isContentId && unfinishedExtension) leftovers.push(path)
      else if (!isContentId) unknownContent.push({ path })
      else if (!isKnown(id)) unknownContent.push({ path, id })
    }
  }
  return { leftovers, unknownContent }
}

/** Detects the backend from the pool's content. */
export async function detectBackend(pool: string): Promise<'loop' | 'directory' | undefined> {
  for (const directory of [volumesIn(pool), snapshotsIn(pool)]) {
    for (const file of await readdir(directory)) {
      const isImage = file.endsWith(IMAGE_EXTENSION)
      const id = isImage ? file.slice(0, -IMAGE_EXTENSION.length) : file
      if (isVolumeId(id) || isSnapshotId(id)) return isImage ? 'loop' : 'directory'
    }
  }
  return undefined
}
