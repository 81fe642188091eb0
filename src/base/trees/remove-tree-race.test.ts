// Simulates a hostile program that still has the volume mounted. Before a step of the deletion, it replaces a directory with
// a link to a directory outside the volume. The test repeats this for every step.
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'

const hooks = vi.hoisted(() => ({ beforeStep: () => {} }))

vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs/promises')>()
  const withHook = (name: 'open' | 'opendir' | 'rename' | 'rm' | 'rmdir' | 'unlink') => ({
    [name]: (...args: unknown[]) => {
      hooks.beforeStep()
      return (real[name] as (...args: unknown[]) => unknown)(...args)
    },
  })
  const names = ['open', 'opendir', 'rename', 'rm', 'rmdir', 'unlink'] as const
  return { ...real, ...Object.assign({}, ...names.map(withHook)) }
})

// Other test files of the same worker may have imported the module with the real functions, or import it later.
vi.resetModules()
const { removeTree } = await import('./remove-tree.ts')
afterAll(() => void vi.resetModules())

/**
 * Deletes a tree in which a directory is replaced by a link before the step `swapBefore`. Returns the number of steps of
 * the deletion and the remaining files outside of the tree.
 */
async function deleteWhileSwapping(swapBefore: number): Promise<{ steps: number; outsideFiles: string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-race-'))
  try {
    mkdirSync(join(dir, 'outside', 'deeper'), { recursive: true })
    writeFileSync(join(dir, 'outside', 'precious'), '')
    writeFileSync(join(dir, 'outside', 'deeper', 'precious'), '')
    const innerDir = join(dir, 'tree', 'sub', 'deeper')
    mkdirSync(innerDir, { recursive: true })
    writeFileSync(join(innerDir, 'precious'), '')
    writeFileSync(join(dir, 'tree', 'sub', 'precious'), '')
    let steps = 0
    hooks.beforeStep = () => {
      if (steps++ !== swapBefore) return
      try {
        renameSync(join(dir, 'tree', 'sub'), join(dir, 'tree', 'aside'))
        symlinkSync(join(dir, 'outside'), join(dir, 'tree', 'sub'))
      } catch {} // the directory is already deleted
    }
    await removeTree(join(dir, 'tree')).catch(() => {}) // the first deletion may fail
    await removeTree(join(dir, 'tree'))
    expect(readdirSync(dir)).toEqual(['outside'])
    return { steps, outsideFiles: readdirSync(join(dir, 'outside'), { recursive: true }).map(String).sort() }
  } finally {
    hooks.beforeStep = () => {}
    rmSync(dir, { recursive: true, force: true })
  }
}

const OUTSIDE_FILES = ['deeper', 'deeper/precious', 'precious']

describe.runIf(process.platform === 'linux')('removeTree of a tree that changes', () => {
  it('deletes no files outside the tree if a directory is replaced by a link before any step', async () => {
    const { steps } = await deleteWhileSwapping(Number.POSITIVE_INFINITY)
    expect(steps).toBeGreaterThan(10)
    for (let step = 0; step < steps; step++) {
      expect((await deleteWhileSwapping(step)).outsideFiles, `swapped before step ${step}`).toEqual(OUTSIDE_FILES)
    }
  })
})
