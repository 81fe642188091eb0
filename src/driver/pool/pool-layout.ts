// Where things lie in a pool. Names are made from ids alone.
//   volumes/<id>.img, snapshots/<id>.img     loop backend
//   volumes/<id>/,    snapshots/<id>/        directory backend
//   .stowage/                                what the driver remembers
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isSnapshotId, isVolumeId, type SnapshotId, type VolumeId } from '../ids.ts'

export const volumesIn = (pool: string) => join(pool, 'volumes')
export const snapshotsIn = (pool: string) => join(pool, 'snapshots')
export const memoryIn = (pool: string) => join(pool, '.stowage')
/** Where a copied file system is mounted once, to give it an identity of its own. */
export const scratchIn = (pool: string, id: VolumeId) => join(memoryIn(pool), 'scratch', id)

export const contentOf = (pool: string, id: VolumeId | SnapshotId): string =>
  join(isVolumeId(id) ? volumesIn(pool) : snapshotsIn(pool), id)
export const imageOf = (pool: string, id: VolumeId | SnapshotId): string => `${contentOf(pool, id)}${IMAGE}`

const IMAGE = '.img'
/** A copy that is not finished yet, or a tree that is on its way out. */
const UNFINISHED = ['.part', '.gone']

/** The path, if anything is there. */
export async function ifThere(path: string): Promise<string | undefined> {
  try {
    await lstat(path)
    return path
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export interface Stranger {
  readonly path: string
  /** If it is named as a volume or a snapshot is: then a record of it was lost. */
  readonly id?: VolumeId | SnapshotId
}

/** What lies in the pool beside what the records know: leftovers of ours that may go, and things that are not ours. */
export async function strangersIn(
  pool: string,
  isKnown: (id: string) => boolean,
): Promise<{ readonly leftovers: readonly string[]; readonly unknown: readonly Stranger[] }> {
  const leftovers: string[] = []
  const unknown: Stranger[] = []
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

/** By what lies in the pool: which backend it was made with, for when nothing else tells. */
export async function backendSeenIn(pool: string): Promise<'loop' | 'directory' | undefined> {
  for (const directory of [volumesIn(pool), snapshotsIn(pool)]) {
    for (const file of await readdir(directory)) {
      const isImage = file.endsWith(IMAGE)
      const id = isImage ? file.slice(0, -IMAGE.length) : file
      if (isVolumeId(id) || isSnapshotId(id)) return isImage ? 'loop' : 'directory'
    }
  }
  return undefined
}
