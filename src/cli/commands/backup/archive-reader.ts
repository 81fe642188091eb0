// Reads the bytes of archives, and shows the progress on standard error.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock } from '../../../base/clock.ts'
import { createWorkProgress, standardError } from '../../output/work-progress.ts'

export interface ArchiveReader {
  /** Returns the chunks of an archive. The file is opened when the first is read. `-` is standard input. */
  read(path: string): AsyncIterable<Buffer>
  /** Clears the progress on a terminal. It reappears when more is read. */
  finish(): void
}

const READ_BYTES = 512 * 1024

/**
 * Creates a reader of archives. The total of its progress is the sum of their sizes. It is unknown if one of them is
 * standard input or cannot be read.
 */
export async function createArchiveReader(
  paths: readonly string[],
  { title, clock }: { readonly title: string; readonly clock: Clock },
): Promise<ArchiveReader> {
  const sizes = await Promise.all(paths.map((path) => (path === '-' ? undefined : sizeOf(path))))
  const total = sizes.reduce<number | undefined>(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  )
  const progress = createWorkProgress({
    title,
    unit: 'bytes',
    ...(total === undefined ? {} : { total }),
    clock,
    output: standardError(),
  })
  return {
    async *read(path) {
      const stream = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: READ_BYTES })
      for await (const chunk of stream) {
        progress.add(chunk.length)
        yield chunk
      }
    },
    finish: progress.finish,
  }
}

/** Returns undefined if the file cannot be read. Reading the archive then reports the error. */
const sizeOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ size }) => size,
    () => undefined,
  )
