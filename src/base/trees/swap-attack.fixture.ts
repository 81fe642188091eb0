// Test fixture: attacks an operation on a volume as a pod can. A thread replaces a directory of the volume with a link to a
// directory of the host, and back, as fast as it can.
import { lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface SwapAttack {
  /** The volume. It contains the directory `d`, with the same file names as the host's directory. */
  readonly volume: string
  /** A directory for the results of the operation. */
  readonly scratch: string
  /** Runs the operation, which may fail, at least this many times and until there were at least as many swaps. */
  repeat(times: number, operation: (index: number) => Promise<void>): Promise<void>
  /** Returns the attributes and contents of the host's directory. */
  readHost(): Promise<unknown>
  dispose(): Promise<void>
}

/** The content of the host's files. */
export const HOST_CONTENT = 'content of the host'

const FILES = Array.from({ length: 20 }, (_, index) => `f${index}`)

const SWAP = `
const { renameSync } = require('node:fs')
const { workerData: { volume, counter } } = require('node:worker_threads')
const swaps = new Int32Array(counter)
let createdCount = 0
const rename = (from, to) => {
  try {
    renameSync(volume + from, volume + to)
    return true
  } catch {
    return false
  }
}
// The operation may create the name while it is missing: then that entry is moved away.
const replace = (from) => {
  while (!rename(from, '/d')) rename('/d', '/created-' + createdCount++)
}
for (;;) {
  rename('/d', '/hidden')
  replace('/link')
  rename('/d', '/link')
  replace('/hidden')
  Atomics.add(swaps, 0, 1)
}`

export async function startSwapAttack(): Promise<SwapAttack> {
  const top = await mkdtemp(join(tmpdir(), 'stowage-attack-'))
  const [volume, hostDir, scratch] = [join(top, 'volume'), join(top, 'host'), join(top, 'scratch')]
  await createFiles(hostDir, HOST_CONTENT)
  await createFiles(join(volume, 'd'), 'content of the volume')
  await mkdir(scratch)
  await symlink(hostDir, join(volume, 'link'))
  const counter = new SharedArrayBuffer(4)
  const swaps = new Int32Array(counter)
  const attacker = new Worker(SWAP, { eval: true, workerData: { volume, counter } })
  return {
    volume,
    scratch,
    async repeat(times, operation) {
      for (let index = 0; index < times || swaps[0]! < times; index++) await operation(index).catch(() => {})
    },
    readHost: () =>
      Promise.all(
        [hostDir, ...FILES.map((name) => join(hostDir, name))].map(async (path) => {
          const { ino, uid, gid, mode, ctimeMs } = await lstat(path)
          return { ino, uid, gid, mode, ctimeMs, content: path === hostDir ? '' : await readFile(path, 'utf8') }
        }),
      ),
    async dispose() {
      await attacker.terminate()
      await rm(top, { recursive: true })
    },
  }
}

async function createFiles(directory: string, content: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const name of FILES) await writeFile(join(directory, name), content, { mode: 0o600 })
}
