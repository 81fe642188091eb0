// Reads a file that another program replaces, such as a renewed token, and caches its content for a minute. If the file can
// no longer be read, the reader returns the previous content.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'

const CONTENT_AGE_MS_MAX = 60_000

export function cachedFileReader(path: string, clock: Clock): () => Promise<string> {
  let content: string | undefined
  let readAtMs = 0
  return async () => {
    if (content !== undefined && clock.monotonicMs() - readAtMs < CONTENT_AGE_MS_MAX) return content
    try {
      content = await readFile(path, 'utf8')
    } catch (error) {
      if (content === undefined) throw new Error(`Cannot read ${path}: ${(error as Error).message}`)
    }
    readAtMs = clock.monotonicMs()
    return content
  }
}
