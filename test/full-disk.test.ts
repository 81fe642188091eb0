// Starts the server on a file system that is full. The store is a memory-mapped file, so without a check the process would
// end with SIGBUS and no message.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { runStowage } from './helpers/run-stowage.ts'

const skip = skipReason(await probeThisMachine(), ['mount'])
let disk: string

beforeAll(async () => {
  if (skip) return
  disk = await mkdtemp(join(tmpdir(), 'stowage-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
})

afterAll(async () => {
  if (skip) return
  execFileSync('umount', [disk])
  await rm(disk, { recursive: true })
})

it.skipIf(skip)(
  `SYS-1 stowage up on a full disk names the disk and the missing space${skip ? ` (${skip})` : ''}`,
  async () => {
    const { bavail, bsize } = await statfs(disk)
    await writeFile(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 16 * 1_024))
    const dataDir = join(disk, 'data')
    const expected = {
      code: 1,
      stderr:
        `stowage: The disk is full: the file system mounted at ${disk}, which holds ${dataDir}, has 16 KiB available. ` +
        'At least 4096 KiB are needed: free another 4080 KiB, or choose a directory on another disk.\n',
    }
    for (let start = 0; start < 2; start++) {
      expect(await runStowage('up', '--data-dir', dataDir, '--listen', '127.0.0.1:0')).toMatchObject(expected)
    }
  },
)
