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
/** Where a copied file system is mounted once to give it a new UUID. */
export const scratchIn = (pool: string, id: VolumeId) => join(stateIn(pool), 'scratch', id)

export const contentOf = (pool: string, id: VolumeId | SnapshotId): string =>
  join(isVolumeId(id) ? volumesIn(pool) : snapshotsIn(pool), id)
export const imageOf = (pool: string, id: VolumeId | SnapshotId): string => `${contentOf(pool, id)}${IMAGE}`

const IMAGE = '.img'
/** An unfinished copy, or a directory that is being deleted. */
const UNFINISHED = ['.part', '.gone']

/** The path if it exists, otherwise undefined. */
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
  /** Set if the name is that of a volume or snapshot: then its record was lost. */
  readonly id?: VolumeId | SnapshotId
}

/** Content of the pool without a record: remains of unfinished operations, which can be deleted, and everything else. */
export async function findUnrecorded(
  pool: string,
  isKnown: (id: string) => boolean,
): Promise<{ readonly leftovers: readonly string[]; readonly unknown: readonly UnrecordedContent[] }> {
  const leftovers: string[] = []
  const unknown: UnrecordedContent[] = []
  for (const directory of [volumesIn(pool), snapshotsIn(pool)]) {
    for (const file of await readdir(directory)) {
      const unfinished = UNFINISHED.find((ending) => file.endsWith(ending))
      const name = unfinished ? file.slice(0, -unfinished.length) : file
      const id = name.endsWith(IMAGE) ? name.slice(0, -IMAGE.length) : name
      const path = join(directory, file)
      const isOurs = isVolumeId(id) || isSnapshotId(id)
      if (isOurs && unfinished) leftovers.push(path)
      else if (!isOurs) unknown.push({ path })
      else if (!isKnown(id)) unknown.push({ path, id })
    }
  }
  return { leftovers, unknown }
}

/** Detects the backend from the content of the pool, if the marker file is missing. */
export async function detectBackend(pool: string): Promise<'loop' | 'directory' | undefined> {
  for (const directory of [volumesIn(pool), snapshotsIn(pool)]) {
    for (const file of await readdir(directory)) {
      const isImage = file.endsWith(IMAGE)
      const id = isImage ? file.slice(0, -IMAGE.length) : file
      if (isVolumeId(id) || isSnapshotId(id)) return isImage ? 'loop' : 'directory'
    }
  }
  return undefined
}
