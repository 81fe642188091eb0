// Creates and removes emptyDir volumes.

import { quantityToBytes } from '../../api/quantity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import type { ResolvedVolume } from './resolve-volume.ts'

/** The mode of the directories above the volume, which only the agent may write to. */
const DIRECTORY_MODE = 0o750
const EMPTY_DIR_MODE = 0o777

export interface EmptyDirDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
}

export async function makeEmptyDir(
  uid: string,
  name: string,
  emptyDir: Extract<ResolvedVolume, { is: 'emptyDir' }> & { readonly fsGroup?: number },
  { disk, paths }: EmptyDirDeps,
): Promise<string> {
  const path = paths.emptyDir(uid, name)
  await disk.makeDirectory(path, DIRECTORY_MODE)
  if (emptyDir.inMemory) {
    await disk.mountTmpfs(
      path,
      emptyDir.sizeLimit === undefined ? undefined : Number(quantityToBytes(emptyDir.sizeLimit)),
    )
  }
  await disk.setMode(path, emptyDir.mode ?? EMPTY_DIR_MODE)
  if (emptyDir.fsGroup !== undefined) {
    await disk.applyFsGroup(path, { group: emptyDir.fsGroup, readOnly: false, onlyOnRootMismatch: true })
  }
  return path
}

/** Returns the message of the eviction if the volume has more data than its limit. */
export async function checkEmptyDirLimit(
  { path, name, sizeLimit }: { readonly path: string; readonly name: string; readonly sizeLimit: string },
  disk: NodeDisk,
): Promise<string | undefined> {
  const usedBytes = await disk.measureUsage(path)
  if (usedBytes <= Number(quantityToBytes(sizeLimit))) return undefined
  return `Usage of EmptyDir volume ${JSON.stringify(name)} exceeds the limit ${JSON.stringify(sizeLimit)}. `
}

/** Removes all emptyDir volumes of the pod. */
export async function removeEmptyDirs(uid: string, { disk, paths }: EmptyDirDeps): Promise<void> {
  for (const name of await disk.list(paths.emptyDirs(uid))) {
    const path = paths.emptyDir(uid, name)
    if (await disk.isMountPoint(path)) await disk.unmount(path)
    await disk.removeTree(path)
  }
}
