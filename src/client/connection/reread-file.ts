// A file that another program rewrites, such as a renewed token: read at most once a minute. If it cannot be read, the last
// content is used.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'

const REREAD_INTERVAL_MS = 60_000

export function rereadFile(path: string, clock: Clock): () => Promise<string> {
  let text: string | undefined
  let readMs = 0
  return async () => {
    if (text !== undefined && clock.monotonicMs() - readMs < REREAD_INTERVAL_MS) return text
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (text === undefined) throw new Error(`Cannot read ${path}: ${(error as Error).message}`)
    }
    readMs = clock.monotonicMs()
    return text
  }
}
