// Opens the root directory of all volumes. Links in its path are resolved once. Before each use, the root is checked to be
// the same directory, because unmounting its disk exposes the directory below the mount point. root-identity.ts identifies it
// across restarts.
import { lstat, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { describeDiskError } from '../../../base/disk-error.ts'
import { ensureDirectory } from '../../../base/files.ts'
import { UnreachableError } from '../plugin/failures.ts'
import { checkSameRoot, type RootIdentity, recordRoot } from './root-identity.ts'

export interface Root {
  /** Absolute path without links. */
  readonly path: string
  /** Throws if the path is no longer the directory that was opened. */
  check(): Promise<void>
}

/** Creates a missing root unless the identity refers to a root of an earlier run. */
export async function openRoot(configuredPath: string, identity?: RootIdentity): Promise<Root> {
  if (identity) await checkSameRoot(resolve(configuredPath), identity)
  const path = await prepareRoot(resolve(configuredPath))
  if (path === '/') throw new Error('Volumes cannot be directly below /: choose another directory.')
  if (identity) await recordRoot(path, identity)
  const { dev, ino } = await lstat(path, { bigint: true })
  return {
    path,
    async check() {
      const currentStats = await lstat(path, { bigint: true }).catch((error) => {
        throw new UnreachableError(describeDiskError('read', path, error))
      })
      if (currentStats.dev === dev && currentStats.ino === ino) return
      throw new UnreachableError(
        `The volumes directory ${path} was unmounted or replaced since this process started. Nothing was changed. ` +
          'Mount it again; if it was replaced on purpose, restart this process.',
      )
    },
  }
}

async function prepareRoot(path: string): Promise<string> {
  try {
    await ensureDirectory(path)
    return await realpath(path)
  } catch (error) {
    throw new Error(describeDiskError('use', path, error))
  }
}
