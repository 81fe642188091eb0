// Tests the formatting of devices with a fake blkid. filesystems.host.test.ts uses real devices.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFilesystems } from './filesystems.ts'
import type { Mounts } from './host.ts'

let dir: string
let device: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-filesystems-'))
  device = join(dir, 'device')
  await writeFile(device, Buffer.alloc(2 ** 21, 'data'))
})
afterEach(() => rm(dir, { recursive: true }))

/** The file systems of a node on which blkid finds several signatures, even after the start of a device was erased. */
const filesystems = createFilesystems({
  run: async () => ({ code: 8, stdout: '', stderr: '' }),
  mounts: {} as Mounts,
})

describe('formatting a device that is not blank', () => {
  it('fails with the message that nothing was written', async () => {
    const formatRun = filesystems.format(device, 'ext4', { keepReservation: false })
    await expect(formatRun).rejects.toThrow('it has several conflicting signatures. Nothing was written. Save')
  })

  it('fails with the number of overwritten bytes if it has erased an interrupted format', async () => {
    const formatRun = filesystems.format(device, 'ext4', { keepReservation: false, wasInterrupted: true })
    await expect(formatRun).rejects.toThrow(
      'it has several conflicting signatures. The first 1048576 bytes were overwritten, because a format was interrupted before.',
    )
  })
})
