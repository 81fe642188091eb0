import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { volumeIdOf } from '../../../driver/ids.ts'
import { deleteData, findForeignEntries, isDataDirectory } from './data-files.ts'
import { findVolumes, type StoreContent } from './volumes-on-disk.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-volumes-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

async function write(path: string, text = ''): Promise<void> {
  await mkdir(dirname(join(dataDir, path)), { recursive: true })
  await writeFile(join(dataDir, path), text)
}

const pool = 'nodes/node-1/pool'
const imageOf = (name: string) => `${pool}/volumes/${volumeIdOf(name)}.img`

/** Writes a volume of the driver. */
async function addVolume(name: string, fields: object = {}): Promise<void> {
  await write(imageOf(name))
  const limits = {}
  const record = {
    ...{ format: 1, id: volumeIdOf(name), name, state: 'ready', capacityBytes: 1, provisioning: 'thin', overcommit: 1 },
    ...{ accessTypes: ['mount'], fsType: 'xfs', createdWith: limits, limits, ...fields },
  }
  await write(`${pool}/.stowage/volumes/${volumeIdOf(name)}.json`, JSON.stringify(record))
}

const aPersistentVolume = (name: string, policy: string, source: object): PersistentVolume =>
  ({
    metadata: { name },
    spec: { persistentVolumeReclaimPolicy: policy, claimRef: { namespace: 'shop', name: 'orders' }, ...source },
  }) as PersistentVolume

const csi = (name: string) => ({ csi: { driver: 'local.csi.stowage.dev', volumeHandle: volumeIdOf(name) } })
const aStore = (content: Partial<StoreContent>): StoreContent =>
  ({ volumes: [], claims: [], ...content }) as StoreContent
const keepReasons = async (store: StoreContent) =>
  Object.fromEntries((await findVolumes(dataDir, store)).map(({ name, keepReason }) => [name, keepReason]))

describe('findVolumes', () => {
  it('SYS-25 keeps a volume with reclaim policy Retain, and deletes one with Delete', async () => {
    for (const name of ['pv-a', 'pv-b']) await addVolume(name)
    const volumes = [aPersistentVolume('pv-a', 'Retain', csi('pv-a')), aPersistentVolume('pv-b', 'Delete', csi('pv-b'))]
    expect(await keepReasons(aStore({ volumes }))).toEqual({ 'pv-a': 'reclaim policy Retain', 'pv-b': undefined })
  })

  it('SYS-25 keeps a volume without a PersistentVolume, unless it is new, unused or being deleted', async () => {
    await addVolume('pvc-lost')
    await addVolume('pvc-u1')
    await addVolume('pvc-unused', { isUnused: true })
    await addVolume('pvc-deleting', { state: 'deleting' })
    await write(`${pool}/volumes/${volumeIdOf('pvc-copy')}.img.part`)
    const claims = [{ metadata: { name: 'orders', uid: 'u1' } }]
    expect(await keepReasons(aStore({ claims } as never))).toEqual({
      'pvc-lost': 'no PersistentVolume refers to it',
      'pvc-u1': undefined,
      'pvc-unused': undefined,
      'pvc-deleting': undefined,
    })
  })

  it('SYS-25 keeps archived and retained directories, and deletes the others', async () => {
    for (const name of ['pv-a', 'pv-b', '.archived-pv-c', '.deleting-pv-d']) await write(`volumes/${name}/file`)
    await mkdir(join(dataDir, 'volumes', 'pvc-empty'))
    await write('volumes/.stowage-volumes')
    const hostPath = (name: string) => ({ hostPath: { path: join(dataDir, 'volumes', name) } })
    const volumes = [
      aPersistentVolume('pv-a', 'Retain', hostPath('pv-a')),
      aPersistentVolume('pv-b', 'Delete', hostPath('pv-b')),
    ]
    expect(await keepReasons(aStore({ volumes }))).toEqual({
      'pv-a': 'reclaim policy Retain',
      'pv-b': undefined,
      '.archived-pv-c': 'no PersistentVolume refers to it',
      'pvc-empty': undefined,
    })
  })

  it('SYS-25 keeps every volume if the store cannot be read', async () => {
    await addVolume('pv-a', { isUnused: true })
    expect(await keepReasons({ problem: 'it is missing' })).toEqual({
      'pv-a': 'the store cannot be read: it is missing',
    })
  })
})

describe('deleteData', () => {
  const FILES = ['store/store.mdb', 'pki/ca.crt', 'admin.kubeconfig', 'server.json', 'audit/audit.log', 'volumes.id']
  const list = async () =>
    (await readdir(dataDir, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(dataDir.length + 1))
      .sort()

  it('SYS-25 deletes a data directory completely', async () => {
    for (const file of [...FILES, 'volumes/pv/file', 'nodes/node-1/agent/agent.json']) await write(file)
    await addVolume('pv-a')
    expect(await isDataDirectory(dataDir)).toBe(true)
    await deleteData(dataDir, new Set())
    await expect(readdir(dataDir)).rejects.toThrow('ENOENT')
    await deleteData(dataDir, new Set())
  })

  it('SYS-25 keeps volumes with their records, and files that Stowage did not create', async () => {
    for (const name of ['pv-a', 'pv-b']) await addVolume(name)
    for (const file of [...FILES, 'notes.txt', 'volumes/.stowage-volumes', 'volumes/pv-c/x', 'volumes/pv-d/x'])
      await write(file)
    expect(await findForeignEntries(dataDir)).toEqual(['notes.txt'])
    await deleteData(dataDir, new Set([join(dataDir, imageOf('pv-a')), join(dataDir, 'volumes', 'pv-c')]))
    expect(await list()).toEqual([
      `${pool}/.stowage/volumes/${volumeIdOf('pv-a')}.json`,
      imageOf('pv-a'),
      'notes.txt',
      'volumes.id',
      'volumes/.stowage-volumes',
      'volumes/pv-c/x',
    ])
  })
})
