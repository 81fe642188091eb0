// A file that others rewrite (a token that is renewed): read at most once a minute. While it cannot be read, what it
// last said still stands.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'

const REREAD_MS = 60_000

export function rereadFile(path: string, clock: Clock): () => Promise<string> {
  let text: string | undefined
  let readMs = 0
  return async () => {
    if (text !== undefined && clock.monotonicMs() - readMs < REREAD_MS) return text
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (text === undefined) throw new Error(`Cannot read ${path}: ${(error as Error).message}`)
    }
    readMs = clock.monotonicMs()
    return text
  }
}
