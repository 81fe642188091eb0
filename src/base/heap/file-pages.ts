// Releases pages of mapped files, which count as resident memory of this process until the kernel needs the memory. Linux then only
// forgets that the process has them: a page that is used again comes from the kernel's cache of the file, with its neighbours.
//   the program   Node.js reads about 20 MB only while it starts: symbols, the snapshot of V8, code of the initialization
//   shared files  LMDB reads the store through a mapping for its commits, and keeps the former mappings of a store that has grown
import { readFileSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import { loadCFunction } from './c-library.ts'
import { type Mapping, programMappings, sharedFileMappings } from './file-mappings.ts'

const MADV_DONTNEED = 4
/**
 * By the first time, a process that stays has started, and commands that end sooner do not load a native library. A release takes
 * about a millisecond per 100 MB.
 */
const INTERVAL_MS = 30_000

interface FilePages {
  releaseProgram(): void
  releaseShared(): void
}

/** Releases the pages that only the start has used, and those of shared files regularly, also under load. */
export function releaseFilePages({
  clock,
  pages = filePages,
}: {
  clock: Pick<Clock, 'after'>
  pages?: FilePages
}): void {
  const releaseShared = () => {
    pages.releaseShared()
    clock.after(INTERVAL_MS, releaseShared)
  }
  clock.after(INTERVAL_MS, () => {
    pages.releaseProgram()
    releaseShared()
  })
}

/** The pages of this process. Releasing them does nothing on another system, or without /proc. */
export const filePages: FilePages = {
  releaseProgram: () => release(() => programMappings(readFileSync('/proc/self/smaps', 'latin1'), process.execPath)),
  releaseShared: () => release(() => sharedFileMappings(readFileSync('/proc/self/maps', 'latin1'))),
}

let madvise: ReturnType<typeof loadCFunction> | 'unloaded' = 'unloaded'

/**
 * The mappings are read and released in one turn of the event loop, because only the main thread unmaps them: an address that is used
 * for other memory in between would lose its content.
 */
function release(read: () => Mapping[]): void {
  let mappings: Mapping[]
  try {
    mappings = read()
  } catch {
    return // another operating system, or /proc is not mounted
  }
  if (mappings.length === 0) return
  if (madvise === 'unloaded') madvise = loadCFunction('int madvise(uintptr_t address, size_t length, int advice)')
  for (const { address, bytes } of mappings) madvise?.(address, bytes, MADV_DONTNEED)
}
