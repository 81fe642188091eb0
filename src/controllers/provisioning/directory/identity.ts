// Identifies the root across restarts: a mark inside it, and the same mark in a state file elsewhere. If its disk is not
// mounted at the start, the root is an empty directory, and every volume would count as deleted.
import { join } from 'node:path'
import type { Random } from '../../../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../../../base/files.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { diskProblem } from './disk-problem.ts'

export interface RootIdentity {
  /** Remembers the mark; not on the disk that the volumes are on. */
  readonly file: string
  readonly random: Random
}

const MARK = '.stowage-volumes'

/** Throws when an earlier run had its volumes in a directory that this one is not. Makes nothing. */
export async function checkIsSameRoot(root: string, { file }: RootIdentity): Promise<void> {
  const remembered = await markIn(file)
  if (remembered === undefined) return
  const found = await markIn(join(root, MARK))
  if (found === remembered) return
  const what = found === undefined ? `lacks the mark ${MARK}` : `has another mark in ${MARK}`
  throw new Error(
    `${root} is not the directory that volumes were made in before: it ${what}. Is its disk not mounted? ` +
      `Mount it, or remove ${file} to go on with what is there now, without those volumes.`,
  )
}

/** Marks the root, if it has no mark yet, and remembers it. What is in there stays. */
export async function rememberRoot(root: string, { file, random }: RootIdentity): Promise<void> {
  if ((await markIn(file)) !== undefined) return
  const path = join(root, MARK)
  const mark = (await markIn(path)) ?? randomUuid(random)
  await writeMark(path, mark) // first: a mark that is remembered and was never made would stop the next start
  await writeMark(file, mark)
}

async function markIn(path: string): Promise<string | undefined> {
  try {
    return (await readTextIfPresent(path))?.trim() || undefined
  } catch (error) {
    throw new Error(diskProblem('read', path, error))
  }
}

async function writeMark(path: string, mark: string): Promise<void> {
  try {
    await writePrivateFile(path, `${mark}\n`)
  } catch (error) {
    throw new Error(diskProblem('write', path, error))
  }
}
