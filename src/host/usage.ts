// Measures the space usage of a file system (statfs) or of a directory (by walking it). Walks are bounded, shared by
// concurrent callers, and cached for a short time.
import type { BigIntStats } from 'node:fs'
import { type FileHandle, lstat, open, statfs } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { DIRECTORY_ONLY } from '../base/trees/open-entry.ts'
import { walkTree } from '../base/trees/walk-tree.ts'
import type { SpaceUsage, TreeUsage, Usage } from './host.ts'

export interface UsageDeps {
  readonly clock: Clock
  readonly filesWalkedMax?: number
}

/** The result for more files is incomplete. */
const FILES_WALKED_MAX = 1_000_000

/** An older cached result is measured again. */
const RESULT_AGE_MS_MAX = 10_000

/** Maximum number of cached results. The oldest is evicted first. */
const RESULTS_MAX = 1_000

const STAT_BLOCK_BYTES = 512n

export function createUsage({ clock, filesWalkedMax = FILES_WALKED_MAX }: UsageDeps): Usage {
  const cache = new Map<string, { readonly atMs: number; readonly usage: Promise<TreeUsage> }>()

  return {
    async measureFilesystem(path): Promise<SpaceUsage> {
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

    measureDirectory(path): Promise<TreeUsage> {
      const cachedResult = cache.get(path)
      if (cachedResult && clock.monotonicMs() - cachedResult.atMs < RESULT_AGE_MS_MAX) return cachedResult.usage
      const usage = measureTree(path, filesWalkedMax)
      cache.delete(path) // reinsert as the newest
      cache.set(path, { atMs: clock.monotonicMs(), usage })
      if (cache.size > RESULTS_MAX) cache.delete(cache.keys().next().value!)
      usage.catch(() => cache.delete(path)) // do not cache failures
      return usage
    },
  }
}

/** Counts allocated blocks. Hard links count once; symbolic links and other mounted file systems are not followed. */
export async function measureTree(root: string, filesMax = FILES_WALKED_MAX): Promise<TreeUsage> {
  const directory = await open(root, DIRECTORY_ONLY)
  try {
    return await measureDirectory(directory, filesMax)
  } finally {
    await directory.close()
  }
}

async function measureDirectory(root: FileHandle, filesMax: number): Promise<TreeUsage> {
  const { dev, ino } = await root.stat({ bigint: true })
  const countedInodes = new Set<bigint>()
  let usedBlocks = 0n
  let files = 0
  let isComplete = true
  const steps = walkTree(root, {
    canEnter: async (directory) => (await directory.stat({ bigint: true })).dev === dev,
    onSkip: () => (isComplete = false),
  })
  for await (const step of steps) {
    if (step.is === 'end of directory') continue
    const stats = step.is === 'file' ? await lstatIfAccessible(step.path) : await step.directory.stat({ bigint: true })
    if (!stats || stats.dev !== dev || stats.ino === ino) continue
    if (files === filesMax) return { usedBytes: Number(usedBlocks * STAT_BLOCK_BYTES), files, isComplete: false }
    if (stats.nlink > 1n && !stats.isDirectory()) {
      if (countedInodes.has(stats.ino)) continue
      countedInodes.add(stats.ino)
    }
    files++
    usedBlocks += stats.blocks
  }
  return { usedBytes: Number(usedBlocks * STAT_BLOCK_BYTES), files, isComplete }
}

async function lstatIfAccessible(path: Buffer): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true })
  } catch (error) {
    if (['ENOENT', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
