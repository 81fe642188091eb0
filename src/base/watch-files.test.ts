import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { manualClock } from './manual-clock.ts'
import { watchFiles } from './watch-files.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-watch-files-'))
})
afterEach(() => rm(dir, { recursive: true }))

/** Watches the file with a manual clock and counts the changes. */
async function watch(path: string) {
  const clock = manualClock()
  let changes = 0
  const stop = await watchFiles({
    paths: [path],
    clock,
    onChange: async () => {
      changes++
    },
  })
  /** Polls until there was this number of changes. */
  const waitForChanges = async (count: number) => {
    while (changes < count) {
      await clock.advance(400)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(changes).toBe(count)
  }
  return { stop, waitForChanges }
}

it('SYS-22 watchFiles detects a file that is written, replaced by a rename, deleted and created', async () => {
  const path = join(dir, 'file')
  await writeFile(path, 'a')
  const { waitForChanges, stop } = await watch(path)
  await writeFile(path, 'b')
  await waitForChanges(1)
  await writeFile(`${path}.tmp`, 'c')
  await rename(`${path}.tmp`, path)
  await waitForChanges(2)
  await rm(path)
  await waitForChanges(3)
  await writeFile(path, 'd')
  await waitForChanges(4)
  stop()
})

it("SYS-22 watchFiles detects a changed link in the file's path, as after an update of a mounted Secret", async () => {
  for (const version of ['v1', 'v2']) {
    await mkdir(join(dir, version))
    await writeFile(join(dir, version, 'token'), version)
  }
  await symlink('v1', join(dir, '..data'))
  await symlink('..data/token', join(dir, 'token'))
  const { waitForChanges, stop } = await watch(join(dir, 'token'))
  await symlink('v2', join(dir, '..data_tmp'))
  await rename(join(dir, '..data_tmp'), join(dir, '..data'))
  await waitForChanges(1)
  stop()
})
