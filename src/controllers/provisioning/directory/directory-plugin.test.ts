import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import { aRequest, type RequestFields } from '../plugin/plugin.fixture.ts'
import { provisionerOf } from '../plugin.ts'
import type { Provisioner } from '../provisioner.ts'
import { DIRECTORY_PROVISIONER, type DirectoryPluginOptions, openDirectoryPlugin } from './directory-plugin.ts'
import { openRoot } from './root.ts'

const signal = new AbortController().signal
let dir: string
let root: string

beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-directory-')))
  root = join(dir, 'volumes')
  await mkdir(join(dir, 'outside', 'inner'), { recursive: true })
  await writeFile(join(dir, 'outside', 'precious'), 'data')
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const openProvisioner = async (options: Partial<DirectoryPluginOptions> = {}): Promise<Provisioner> =>
  provisionerOf(await openDirectoryPlugin({ root, ...options }), { clock: manualClock() })

const provision = async (fields: RequestFields = {}, provisioner?: Provisioner) => {
  const result = await (provisioner ?? (await openProvisioner())).provision(aRequest(fields), signal)
  if (result.is !== 'provisioned') throw new Error(`not provisioned: ${result.message}`)
  return {
    metadata: { name: fields.volumeName ?? 'pvc-u-1', annotations: result.volume.annotations },
    spec: result.volume.spec,
  }
}
const volumeAt = (path: string, name = 'pvc-u-1'): PersistentVolume => ({
  metadata: { name },
  spec: { capacity: { storage: '1Gi' }, hostPath: { path } },
})
const isOutsideUnchanged = async () =>
  (await readFile(join(dir, 'outside', 'precious'), 'utf8')) === 'data' &&
  (await readdir(join(dir, 'outside'))).join() === 'inner,precious'

describe('openDirectoryPlugin', () => {
  it('PROV-8 creates a directory below the root and a volume that refers to it', async () => {
    const volume = await provision({ size: '3Gi' })
    expect(volume.spec).toEqual({
      capacity: { storage: '3Gi' },
      hostPath: { path: join(root, 'pvc-u-1'), type: 'Directory' },
    })
    expect((await stat(join(root, 'pvc-u-1'))).mode & 0o7777).toBe(0o770)
  })

  it('PROV-19 creates directories with the permissions that their class requests, regardless of the umask', async () => {
    const umask = process.umask(0o077)
    try {
      await provision({ volumeName: 'open', parameters: { mode: '0777' } })
      await provision({ volumeName: 'shared', parameters: { mode: '2770' } })
    } finally {
      process.umask(umask)
    }
    expect((await stat(join(root, 'open'))).mode & 0o7777).toBe(0o777)
    expect((await stat(join(root, 'shared'))).mode & 0o7777).toBe(0o2770)
  })

  const REJECTED_REQUESTS: [string, RequestFields, RegExp][] = [
    [
      'unknown parameters',
      { parameters: { path: '/etc' } },
      /does not support: "path". The provisioner supports "mode", "onDelete"/,
    ],
    ['modes without all permissions for the owner', { parameters: { mode: '0077' } }, /expected three octal digits/],
    ['setuid', { parameters: { mode: '4777' } }, /expected three octal digits/],
    ['an unknown onDelete', { parameters: { onDelete: 'shred' } }, /expected delete or archive/],
    ['block volumes', { spec: { volumeMode: 'Block' } }, /does not create Block volumes/],
    ['selectors', { spec: { selector: { matchLabels: { a: 'b' } } } }, /supports no selector/],
    ['mount options', { storageClass: { mountOptions: ['ro'] } }, /do not support mount options/],
  ]
  for (const [description, fields, message] of REJECTED_REQUESTS) {
    it(`PROV-10 rejects ${description} and creates nothing`, async () => {
      await expect(provision(fields)).rejects.toThrow(message)
      expect(await readdir(root)).toEqual([])
    })
  }

  it('PROV-12 returns the existing directory with its content if the request is repeated', async () => {
    await provision()
    await writeFile(join(root, 'pvc-u-1', 'file'), 'x')
    const volume = await provision()
    expect(volume.spec.hostPath?.path).toBe(join(root, 'pvc-u-1'))
    expect(await readdir(join(root, 'pvc-u-1'))).toEqual(['file'])
  })

  it('PROV-12 finds a directory that was created before the class was replaced', async () => {
    await provision()
    const volume = await provision({ parameters: { wrong: '1' } })
    expect(volume.spec.hostPath?.path).toBe(join(root, 'pvc-u-1'))
  })

  for (const volumeName of ['..', '../up', 'a/b', '.hidden', 'UP', '', 'a\0b']) {
    it(`PROV-10 rejects the volume name ${JSON.stringify(volumeName)}`, async () => {
      await expect(provision({ volumeName })).rejects.toThrow('cannot be the name of a volume directory')
      expect(await readdir(dir)).toEqual(['outside', 'volumes'])
      expect(await readdir(root)).toEqual([])
    })
  }

  it('PROV-10 rejects a link or file in place of the directory and does not change it', async () => {
    const provisioner = await openProvisioner()
    await symlink(join(dir, 'outside'), join(root, 'pvc-u-1'))
    const mode = (await stat(join(dir, 'outside'))).mode
    await expect(provision({ parameters: { mode: '0777' } }, provisioner)).rejects.toThrow('is not a directory')
    expect((await stat(join(dir, 'outside'))).mode).toBe(mode)
    await writeFile(join(root, 'file'), '')
    await expect(provision({ volumeName: 'file' }, provisioner)).rejects.toThrow('is not a directory')
  })

  it('PROV-14 deletes the directory with its content and succeeds if it is already deleted', async () => {
    const provisioner = await openProvisioner()
    const volume = await provision({}, provisioner)
    await mkdir(join(root, 'pvc-u-1', 'a', 'b'), { recursive: true })
    await symlink(join(dir, 'outside'), join(root, 'pvc-u-1', 'a', 'link'))
    expect(await provisioner.delete(volume, signal)).toEqual({ is: 'deleted' })
    expect(await readdir(root)).toEqual([])
    expect(await provisioner.delete(volume, signal)).toEqual({ is: 'deleted' })
    expect(await isOutsideUnchanged()).toBe(true)
  })

  it('PROV-12 finishes a deletion that a crash interrupted when it is repeated', async () => {
    const provisioner = await openProvisioner()
    const volume = await provision({}, provisioner)
    await rename(join(root, 'pvc-u-1'), join(root, '.deleting-pvc-u-1'))
    await writeFile(join(root, '.deleting-pvc-u-1', 'rest'), '')
    expect(await provisioner.delete(volume, signal)).toEqual({ is: 'deleted' })
    expect(await readdir(root)).toEqual([])
  })

  it('PROV-12 finishes interrupted deletions at the next start', async () => {
    await provision({ volumeName: 'kept' })
    await mkdir(join(root, '.deleting-pvc-9', 'a'), { recursive: true })
    await mkdir(join(root, '.archived-pvc-8'))
    await openProvisioner()
    expect(await readdir(root)).toEqual(['.archived-pvc-8', 'kept'])
  })

  it('PROV-15 archives the files of deleted volumes if the class requests it', async () => {
    const provisioner = await openProvisioner()
    const volume = await provision({ parameters: { onDelete: 'archive' } }, provisioner)
    await writeFile(join(root, 'pvc-u-1', 'file'), 'x')
    for (const _attempt of [1, 2]) expect(await provisioner.delete(volume, signal)).toEqual({ is: 'deleted' })
    expect(await readFile(join(root, '.archived-pvc-u-1', 'file'), 'utf8')).toBe('x')
    expect(await readdir(root)).toEqual(['.archived-pvc-u-1'])
  })

  it("PROV-20 owns only directories directly below the root with the volume's name", async () => {
    const provisioner = await openProvisioner()
    expect(provisioner.owns(volumeAt(join(root, 'pvc-u-1')))).toBe(true)
    expect(provisioner.owns(volumeAt(join(root, 'pvc-u-2')))).toBe(false)
    expect(provisioner.owns(volumeAt(join(dir, 'outside'), 'outside'))).toBe(false)
    expect(provisioner.owns({ metadata: { name: 'x' }, spec: { nfs: { server: 's', path: join(root, 'x') } } })).toBe(
      false,
    )
  })

  it('PROV-20 deletes only the directory with the name of the volume for any path', async () => {
    const provisioner = await openProvisioner()
    await mkdir(join(root, 'neighbour', 'a'), { recursive: true })
    await symlink(join(dir, 'outside'), join(root, 'link'))
    const start = fc.constantFrom(root, `${root}/`, `${root}/x/..`, `${root}/link`, dir, '', '/', '.')
    const segment = fc.constantFrom('..', '.', '', 'outside', 'inner', 'link', 'neighbour', 'volumes', 'a', 'pvc-u-1')
    const anyPath = fc
      .tuple(start, fc.array(segment, { maxLength: 4 }))
      .map(([head, tail]) => [head, ...tail].join('/'))
    await fc.assert(
      fc.asyncProperty(
        anyPath,
        fc.constantFrom('link', 'pvc-u-1', '..', 'outside', 'inner', 'a'),
        async (path, name) => {
          await mkdir(join(root, 'pvc-u-1'), { recursive: true })
          const result = await provisioner.delete(volumeAt(path, name), signal)
          const isOwnDirectory = path === join(root, 'pvc-u-1') && name === 'pvc-u-1'
          if (isOwnDirectory) expect(result.is).toBe('deleted')
          const names = await readdir(root)
          expect(names).toEqual(isOwnDirectory ? ['link', 'neighbour'] : ['link', 'neighbour', 'pvc-u-1'])
          expect(await readdir(join(root, 'neighbour'))).toEqual(['a'])
          expect(await isOutsideUnchanged()).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('PROV-20 rejects the deletion of a link in place of the directory', async () => {
    const provisioner = await openProvisioner()
    await symlink(join(dir, 'outside'), join(root, 'pvc-u-1'))
    const result = await provisioner.delete(volumeAt(join(root, 'pvc-u-1')), signal)
    expect(result).toEqual({ is: 'failed', message: expect.stringMatching(/pvc-u-1 is a link. Nothing was changed/) })
    expect(await readdir(root)).toEqual(['pvc-u-1'])
    expect(await isOutsideUnchanged()).toBe(true)
  })

  it('resolves a link to the root only at the start', async () => {
    await mkdir(join(dir, 'disk'))
    await symlink(join(dir, 'disk'), join(dir, 'alias'))
    const provisioner = await openProvisioner({ root: join(dir, 'alias') })
    await rm(join(dir, 'alias'))
    await symlink(join(dir, 'outside'), join(dir, 'alias'))
    const volume = await provision({}, provisioner)
    expect(volume.spec.hostPath?.path).toBe(join(dir, 'disk', 'pvc-u-1'))
    expect(await isOutsideUnchanged()).toBe(true)
  })

  it('PROV-12 fails on a root that was unmounted or replaced', async () => {
    const provisioner = await openProvisioner()
    const volume = await provision({}, provisioner)
    await rename(root, join(dir, 'elsewhere'))
    await mkdir(root)
    const message = expect.stringContaining('was unmounted or replaced since this process started')
    expect(await provisioner.provision(aRequest(), signal)).toEqual({ is: 'failed', failure: 'noChange', message })
    expect(await provisioner.delete(volume, signal)).toEqual({ is: 'failed', message })
    expect(await readdir(join(dir, 'elsewhere'))).toEqual(['pvc-u-1'])
    expect(await readdir(root)).toEqual([])
  })

  describe('after a restart', () => {
    const openMarkedRoot = () => openRoot(root, { file: join(dir, 'volumes.id'), random: Math.random })
    const openAfterRestart = async () => openProvisioner({ root: await openMarkedRoot() })

    it('PROV-12 continues in the same root and treats a missing directory as deleted', async () => {
      const firstProvisioner = await openAfterRestart()
      const [keptVolume, lostVolume] = [
        await provision({ volumeName: 'kept' }, firstProvisioner),
        await provision({ volumeName: 'lost' }, firstProvisioner),
      ]
      await rm(join(root, 'lost'), { recursive: true })
      const secondProvisioner = await openAfterRestart()
      expect(await secondProvisioner.delete(lostVolume, signal)).toEqual({ is: 'deleted' })
      expect(await readdir(root)).toEqual(['.stowage-volumes', 'kept'])
      expect(await secondProvisioner.delete(keptVolume, signal)).toEqual({ is: 'deleted' })
    })

    const REPLACED_ROOTS: [string, () => Promise<unknown>, RegExp][] = [
      ['is empty', () => mkdir(root), /lacks the mark/],
      ['does not exist', async () => {}, /lacks the mark/],
      ['has another mark', () => openRoot(root, { file: join(dir, 'other.id'), random: () => 0 }), /has another mark/],
    ]
    for (const [description, replace, message] of REPLACED_ROOTS) {
      it(`PROV-12 does not start on a root that ${description}`, async () => {
        await provision({}, await openAfterRestart())
        await rename(root, join(dir, 'unmounted'))
        await replace()
        const filesBefore = await readdir(dir)
        await expect(openAfterRestart()).rejects.toThrow(message)
        await expect(openAfterRestart()).rejects.toThrow(`Mount it, or remove ${join(dir, 'volumes.id')} to continue`)
        expect(await readdir(dir)).toEqual(filesBefore)
      })
    }

    it('PROV-12 starts with a new identity if the state file was removed', async () => {
      await openAfterRestart()
      await rm(root, { recursive: true })
      await rm(join(dir, 'volumes.id'))
      await openAfterRestart()
      await openAfterRestart()
      expect(await readdir(root)).toEqual(['.stowage-volumes'])
    })

    it('PROV-12 accepts a root without a mark, and a root with a mark if the state file is missing', async () => {
      await provision({}, await openProvisioner())
      const start = async () => {
        const provisioner = await openAfterRestart()
        expect(await readdir(root)).toEqual(['.stowage-volumes', 'pvc-u-1'])
        return provisioner
      }
      await start()
      const mark = await readFile(join(root, '.stowage-volumes'), 'utf8')
      await rm(join(dir, 'volumes.id')) // simulates a crash between the two writes
      await start()
      expect(await readFile(join(dir, 'volumes.id'), 'utf8')).toBe(mark)
    })
  })

  it('rejects unusable roots with a reason', async () => {
    await writeFile(join(dir, 'file'), '')
    await expect(openProvisioner({ root: join(dir, 'file') })).rejects.toThrow(/Cannot use .*file/)
    await expect(openProvisioner({ root: '/' })).rejects.toThrow('choose another directory')
  })

  it.runIf(process.platform === 'linux')('PROV-8 returns the reason if the directory cannot be created', async () => {
    const provisioner = await openProvisioner({ root: '/sys/kernel' }) // rejects new directories even for the root user
    const expectedMessage =
      /^Cannot create \/sys\/kernel\/pvc-u-1: (not permitted|permission denied|the file system is read-only)\./
    const result = await provisioner.provision(aRequest(), signal)
    expect(result).toEqual({ is: 'failed', failure: 'final', message: expect.stringMatching(expectedMessage) })
  })

  it('restricts volumes to its node and reschedules pods of other nodes', async () => {
    const provisioner = await openProvisioner({ node: 'n1' })
    const volume = await provision({ selectedNode: 'n1' }, provisioner)
    expect(volume.spec.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] },
    ])
    const result = await provisioner.provision(aRequest({ selectedNode: 'n2' }), signal)
    expect(result).toMatchObject({ is: 'failed', failure: 'reschedule', message: expect.stringContaining('"n2"') })
  })

  it('has the name of the directory provisioner', async () => {
    expect((await openProvisioner()).name).toBe(DIRECTORY_PROVISIONER)
  })
})
