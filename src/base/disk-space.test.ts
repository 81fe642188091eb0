import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { requireDiskSpace } from './disk-space.ts'

it('requireDiskSpace accepts a file system with enough space', async () => {
  await expect(requireDiskSpace(tmpdir(), 1)).resolves.toBeUndefined()
})

it('requireDiskSpace reports the mount point, the available space and the missing space if there is too little', async () => {
  const { blocks, bsize } = await statfs('/')
  const neededBytes = (blocks + 1) * bsize
  await expect(requireDiskSpace('/', neededBytes)).rejects.toThrow(
    /^The disk is full: the file system mounted at \/, which holds \/, has \d+ KiB available\. At least \d+ KiB are needed: free another \d+ KiB, or choose a directory on another disk\.$/,
  )
})
