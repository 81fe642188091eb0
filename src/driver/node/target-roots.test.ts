import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NodeUnpublishVolumeRequestSchema, NodeUnstageVolumeRequestSchema } from '../../csi/gen/csi_pb.js'
import type { DriverContext } from '../context.ts'
import { volumeIdOf } from '../ids.ts'
import type { MountRecord } from '../pool/records.ts'
import { unpublishVolume } from './publish-volume.ts'
import { unstageVolume } from './stage-volume.ts'
import { createTargetRoots } from './target-roots.ts'

let top: string
beforeEach(async () => {
  top = await realpath(await mkdtemp(join(tmpdir(), 'stowage-targets-')))
  await mkdir(join(top, 'targets'))
  await mkdir(join(top, 'outside'))
  await symlink('../outside', join(top, 'targets', 'link'))
  await symlink('targets', join(top, 'root-link'))
})
afterEach(() => rm(top, { recursive: true }))

const mountRecordAt = (path: string): MountRecord => ({
  format: 1,
  id: volumeIdOf('v'),
  published: [{ path, accessType: 'mount', accessMode: 'SINGLE_NODE_WRITER', isReadOnly: false }],
})

describe('unstage and unpublish', () => {
  it('reject paths outside the target roots', async () => {
    const driver = {
      targetRoots: await createTargetRoots([join(top, 'targets')], join(top, 'pool')),
    } as unknown as DriverContext
    const volumeId = volumeIdOf('v')
    for (const path of [join(top, 'outside/a'), join(top, 'targets/link/a')]) {
      const unpublish = create(NodeUnpublishVolumeRequestSchema, { volumeId, targetPath: path })
      await expect(unpublishVolume(unpublish, driver)).rejects.toThrow(/--target-root/)
      const unstage = create(NodeUnstageVolumeRequestSchema, { volumeId, stagingTargetPath: path })
      await expect(unstageVolume(unstage, driver)).rejects.toThrow(/--target-root/)
    }
  })
})

describe('createTargetRoots', () => {
  it('accepts paths in its directories and rejects others, including those that lead out through a link', async () => {
    const roots = await createTargetRoots([join(top, 'root-link')], join(top, 'pool'))
    for (const path of ['targets/a', 'targets/a/b', 'root-link/a']) await roots.check(join(top, path), 'target_path')
    for (const path of ['targets', 'targets2/a', 'outside/a', 'targets/link/a', 'root-link/link/a']) {
      await expect(roots.check(join(top, path), 'target_path')).rejects.toThrow(/--target-root/)
    }
  })

  it('accepts a link into the pool, and rejects other links and paths behind one', async () => {
    const roots = await createTargetRoots([join(top, 'targets')], join(top, 'pool'))
    await mkdir(join(top, 'pool/volume/a'), { recursive: true })
    await symlink(join(top, 'pool/volume'), join(top, 'targets/published'))
    await symlink(join(top, 'outside'), join(top, 'targets/elsewhere'))
    await roots.check(join(top, 'targets/published'), 'target_path')
    expect(await roots.findProblem(mountRecordAt(join(top, 'targets/published')))).toBeUndefined()
    for (const path of ['targets/published/a', 'targets/elsewhere', 'pool/volume']) {
      await expect(roots.check(join(top, path), 'target_path')).rejects.toThrow(/--target-root/)
    }
  })

  it('finds records of mounts outside its directories, and of paths that are not normalized', async () => {
    const roots = await createTargetRoots([join(top, 'targets')], join(top, 'pool'))
    expect(await roots.findProblem(mountRecordAt(join(top, 'targets', 'a')))).toBeUndefined()
    for (const path of [
      `${top}/outside`,
      `${top}/targets/../outside`,
      `${top}/targets/link/a`,
      'targets/a',
      '',
      '/\0',
    ]) {
      expect(await roots.findProblem(mountRecordAt(path))).toContain('is not one at which volumes may be mounted')
    }
  })

  it('accepts any absolute path if it has no directories', async () => {
    const roots = await createTargetRoots([], join(top, 'pool'))
    await roots.check('/any/path', 'target_path')
    expect(await roots.findProblem(mountRecordAt('/any/path'))).toBeUndefined()
  })

  it('accepts a path that cannot be resolved only if it has no directories', async () => {
    const path = join(top, 'targets', 'a'.repeat(300))
    const unrestrictedRoots = await createTargetRoots([], join(top, 'pool'))
    await unrestrictedRoots.check(path, 'target_path')
    expect(await unrestrictedRoots.findProblem(mountRecordAt(path))).toBeUndefined()
    expect(await unrestrictedRoots.findProblem(mountRecordAt('targets/a'))).toContain('is not one at which')
    const roots = await createTargetRoots([join(top, 'targets')], join(top, 'pool'))
    await expect(roots.check(path, 'target_path')).rejects.toThrow(/--target-root/)
    expect(await roots.findProblem(mountRecordAt(path))).toContain('is not one at which')
  })
})
