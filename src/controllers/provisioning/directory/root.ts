// The root directory of all volumes. Links in its path are resolved once at the start; from then on it must stay the same
// directory, because an unmounted disk leaves another one in its place. Identity across restarts: identity.ts.
import { lstat, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ensureDirectory } from '../../../base/files.ts'
import { NotReached } from '../plugin/failures.ts'
import { diskProblem } from './disk-problem.ts'
import { checkIsSameRoot, type RootIdentity, rememberRoot } from './identity.ts'

export interface Root {
  /** Absolute, without links. */
  readonly path: string
  /** Throws when it is not what it was at the start. */
  check(): Promise<void>
}

/** Made if it is missing, unless an earlier run has had one. */
export async function openRoot(given: string, identity?: RootIdentity): Promise<Root> {
  if (identity) await checkIsSameRoot(resolve(given), identity)
  const path = await prepared(resolve(given))
  if (path === '/') throw new Error('Volumes cannot be kept right below /: choose a directory of their own.')
  if (identity) await rememberRoot(path, identity)
  const { dev, ino } = await lstat(path, { bigint: true })
  return {
    path,
    async check() {
      const now = await lstat(path, { bigint: true }).catch((error) => {
        throw new NotReached(diskProblem('look at', path, error))
      })
      if (now.dev === dev && now.ino === ino) return
      throw new NotReached(
        `${path}, where the volumes are, is not the directory it was at the start: was it unmounted or replaced? ` +
          'Nothing was touched. Bring it back; if it was replaced on purpose, start this process again.',
      )
    },
  }
}

async function prepared(path: string): Promise<string> {
  try {
    await ensureDirectory(path)
    return await realpath(path)
  } catch (error) {
    throw new Error(diskProblem('use', path, error))
  }
}
