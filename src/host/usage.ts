// Space usage of a file system (statfs) or of a directory (by walking it). Walks are bounded, shared by concurrent
// callers, and cached for a short time.
import type { BigIntStats } from 'node:fs'
import { lstat, opendir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { SpaceUsage, TreeUsage, Usage } from './host.ts'

export interface UsageDeps {
  readonly clock: Clock
  readonly filesWalkedMax?: number
}

/** About three seconds of walking; beyond this the result is incomplete. */
const FILES_WALKED_MAX = 1_000_000

/** How long a result is cached. */
const RESULT_AGE_MS_MAX = 10_000

/** Cached results; the oldest is evicted first. */
const RESULTS_MAX = 1_000

const STAT_BLOCK_BYTES = 512n

export function createUsage({ clock, filesWalkedMax = FILES_WALKED_MAX }: UsageDeps): Usage {
  const kept = new Map<string, { readonly atMs: number; readonly answer: Promise<TreeUsage> }>()

  return {
    async ofFilesystem(path): Promise<SpaceUsage> {
      const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path)
      return {
        totalBytes: blocks * bsize,
        usedBytes: (blocks - bfree) * bsize,
        availableBytes: bavail * bsize,
        totalInodes: files,
        usedInodes: files - ffree,
        availableInodes: ffree,
      }
    },

    ofDirectory(path): Promise<TreeUsage> {
      const known = kept.get(path)
      if (known && clock.monotonicMs() - known.atMs < RESULT_AGE_MS_MAX) return known.answer
      const answer = walk(path, filesWalkedMax)
      kept.delete(path) // reinsert as the newest
      kept.set(path, { atMs: clock.monotonicMs(), answer })
      if (kept.size > RESULTS_MAX) kept.delete(kept.keys().next().value!)
      answer.catch(() => kept.delete(path)) // do not cache failures
      return answer
    },
  }
}

/** Counts allocated blocks; hard links once, symbolic links not followed, other mounted file systems skipped. */
async function walk(root: string, filesMax: number): Promise<TreeUsage> {
  const top = await lstat(root, { bigint: true })
  const seenLinks = new Set<string>()
  const directories = [root]
  let usedBlocks = 0n
  let files = 0
  let isComplete = true
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    for await (const entry of entriesOf(directory, () => (isComplete = false))) {
      const path = join(directory, entry.name)
      const found = await lstatIfSeen(path)
      if (!found || found.dev !== top.dev) continue
      if (files === filesMax) return { usedBytes: Number(usedBlocks * STAT_BLOCK_BYTES), files, isComplete: false }
      if (found.nlink > 1n && !found.isDirectory()) {
        if (seenLinks.has(String(found.ino))) continue
        seenLinks.add(String(found.ino))
      }
      files++
      usedBlocks += found.blocks
      if (found.isDirectory()) directories.push(path)
    }
  }
  return { usedBytes: Number(usedBlocks * STAT_BLOCK_BYTES), files, isComplete }
}

/** Ignores directories that are removed during the walk, and reports those without read permission. */
async function* entriesOf(directory: string, onClosed: () => void): AsyncGenerator<{ readonly name: string }> {
  try {
    yield* await opendir(directory)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') onClosed()
    else if (code !== 'ENOENT') throw error
  }
}

async function lstatIfSeen(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true })
  } catch (error) {
    if (['ENOENT', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
