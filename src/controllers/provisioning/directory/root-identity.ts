// Identifies the root across restarts by a mark in the root and the same mark in a state file on another disk. If the disk
// of the root is not mounted at the start, the mark is missing. Without this check, all volumes would be treated as deleted.
import { join } from 'node:path'
import type { Random } from '../../../base/clock.ts'
import { describeDiskError } from '../../../base/disk-error.ts'
import { readTextIfPresent, writePrivateFile } from '../../../base/files.ts'
import { randomUuid } from '../../../base/identifiers.ts'

export interface RootIdentity {
  /** Path of the state file, which must be on another disk than the volumes. */
  readonly file: string
  readonly random: Random
}

const MARK_FILE = '.stowage-volumes'

/** Throws if the root is not the one that the state file identifies. Does not create files. */
export async function checkSameRoot(root: string, { file }: RootIdentity): Promise<void> {
  const recordedMark = await readMark(file)
  if (recordedMark === undefined) return
  const rootMark = await readMark(join(root, MARK_FILE))
  if (rootMark === recordedMark) return
  const problem = rootMark === undefined ? `lacks the mark ${MARK_FILE}` : `has another mark in ${MARK_FILE}`
  throw new Error(
    `${root} is not the directory in which volumes were created before: it ${problem}. Is its disk not mounted? ` +
      `Mount it, or remove ${file} to continue with this directory, without those volumes.`,
  )
}

/** Writes the mark and the state file unless the state file exists. */
export async function recordRoot(root: string, { file, random }: RootIdentity): Promise<void> {
  if ((await readMark(file)) !== undefined) return
  const path = join(root, MARK_FILE)
  const mark = (await readMark(path)) ?? randomUuid(random)
  await writeMark(path, mark) // first, because a state file without a mark in the root prevents the next start
  await writeMark(file, mark)
}

async function readMark(path: string): Promise<string | undefined> {
  try {
    return (await readTextIfPresent(path))?.trim() || undefined
  } catch (error) {
    throw new Error(describeDiskError('read', path, error))
  }
}

async function writeMark(path: string, mark: string): Promise<void> {
  try {
    await writePrivateFile(path, `${mark}\n`)
  } catch (error) {
    throw new Error(describeDiskError('write', path, error))
  }
}
