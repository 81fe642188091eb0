import { mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CgroupWatch, watchCgroups } from './watch-cgroups.ts'

let root: string
let watch: CgroupWatch | undefined
let resolvers: (() => void)[] = []
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'stowage-cgroups-'))
  await mkdir(join(root, 'pods'))
  resolvers = []
  watch = await watchCgroups(root, () => {
    for (const resolve of resolvers.splice(0)) resolve()
  })
})
afterEach(async () => {
  watch?.close()
  await rm(root, { recursive: true, force: true })
})
const nextCall = () => new Promise<void>((resolve) => void resolvers.push(resolve))

describe('watchCgroups', () => {
  it('reports a new cgroup, and one that is created inside it later', async () => {
    const firstCall = nextCall()
    await mkdir(join(root, 'pods', 'pod1'))
    await firstCall
    const secondCall = nextCall()
    await mkdir(join(root, 'pods', 'pod1', 'container'))
    await secondCall
  })

  it('reports a cgroup that is created again after its removal', async () => {
    const firstCall = nextCall()
    await mkdir(join(root, 'pods', 'pod1'))
    await firstCall
    await rmdir(join(root, 'pods', 'pod1'))
    const otherCall = nextCall()
    await mkdir(join(root, 'other'))
    await otherCall
    const secondCall = nextCall()
    await mkdir(join(root, 'pods', 'pod1'))
    await secondCall
  })

  it('ignores writes to files of a cgroup', async () => {
    await writeFile(join(root, 'pods', 'cgroup.procs'), '')
    let count = 0
    const countCall = () => {
      count++
      resolvers.push(countCall)
    }
    resolvers.push(countCall)
    await writeFile(join(root, 'pods', 'cgroup.procs'), '1\n')
    for (const name of ['first', 'second']) {
      const pendingCall = nextCall()
      await mkdir(join(root, name))
      await pendingCall
    }
    expect(count).toBe(2) // one for each directory
  })

  it('returns undefined for a root that does not exist', async () => {
    expect(await watchCgroups(join(root, 'nowhere'), () => {})).toBe(undefined)
  })
})
