import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removeTree } from './remove-tree.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-tree-'))
  await mkdir(join(dir, 'outside'))
  await writeFile(join(dir, 'outside', 'precious'), 'data')
})
afterEach(() => rm(dir, { recursive: true, force: true }))
const isOutsideUnchanged = async () => (await readFile(join(dir, 'outside', 'precious'), 'utf8')) === 'data'

describe('removeTree', () => {
  it('deletes nested directories, and files whose names are not valid UTF-8', async () => {
    const tree = join(dir, 'tree')
    await mkdir(join(tree, 'a', 'b'), { recursive: true })
    await writeFile(join(tree, 'a', 'file'), '1')
    await writeFile(Buffer.concat([Buffer.from(`${tree}/a/`), Buffer.from([0xff, 0xfe])]), 'not UTF-8')
    await removeTree(tree)
    expect(await readdir(dir)).toEqual(['outside'])
  })

  it('succeeds if the tree does not exist', async () => {
    await removeTree(join(dir, 'nothing'))
  })

  it('removes links, not their targets', async () => {
    const tree = join(dir, 'tree')
    await mkdir(join(tree, 'a'), { recursive: true })
    await symlink(join(dir, 'outside'), join(tree, 'a', 'link'))
    await symlink('../../outside/precious', join(tree, 'a', 'file'))
    await symlink(tree, join(tree, 'a', 'loop'))
    await removeTree(tree)
    expect(await readdir(dir)).toEqual(['outside'])
    expect(await isOutsideUnchanged()).toBe(true)
  })

  it('removes only the link if the tree itself is a link', async () => {
    await symlink(join(dir, 'outside'), join(dir, 'tree'))
    await removeTree(join(dir, 'tree'))
    expect(await readdir(dir)).toEqual(['outside'])
    expect(await isOutsideUnchanged()).toBe(true)
  })

  it('deletes a tree deeper than the maximum path length', async () => {
    const LEVELS = 600
    const tree = join(dir, 'tree')
    await mkdir(tree)
    let innerTop = tree
    for (let level = 0; level < LEVELS; level += 100) {
      // Build the tree from the bottom: create a hundred levels and move the existing tree into the lowest one.
      const top = join(dir, `top${level}`)
      const bottom = join(top, ...Array.from({ length: 99 }, () => 'some-level'))
      await mkdir(bottom, { recursive: true })
      if (level > 0) await rename(innerTop, join(bottom, 'd'))
      else await rename(tree, join(bottom, 'd'))
      innerTop = top
    }
    await rename(innerTop, tree)
    await removeTree(tree)
    expect(await readdir(dir)).toEqual(['outside'])
  })

  it('deletes nothing if the signal is already aborted', async () => {
    await mkdir(join(dir, 'tree'))
    await expect(removeTree(join(dir, 'tree'), AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping')
    expect(await readdir(dir)).toEqual(['outside', 'tree'])
  })
})
