// Measures the limit of durable writes: appends values of the same size to a file on the same disk, with one fdatasync per
// group of waiting writers.
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export interface GroupCommitOptions {
  /** A directory on the measured disk. */
  readonly dir: string
  readonly valueBytes: number
  readonly writers: number
  readonly measureMs: number
}

/** Returns durable values per second. */
export function measureGroupCommit({ dir, valueBytes, writers, measureMs }: GroupCommitOptions): number {
  const path = join(dir, 'group-commit')
  const group = Buffer.alloc(valueBytes * writers, 'x')
  const file = openSync(path, 'w')
  try {
    const startMs = performance.now()
    let groups = 0
    let nowMs = startMs
    while (nowMs - startMs < measureMs) {
      writeSync(file, group)
      fdatasyncSync(file)
      groups++
      nowMs = performance.now()
    }
    return (groups * writers) / ((nowMs - startMs) / 1000)
  } finally {
    closeSync(file)
    rmSync(path)
  }
}
