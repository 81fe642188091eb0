import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { volumeIdOf } from '../ids.ts'
import { openRecordFiles } from './record-files.ts'
import { parseVolumeRecord, type VolumeRecord } from './records.ts'

const aRecord = (name: string, change: Partial<VolumeRecord> = {}): VolumeRecord => ({
  format: 1,
  id: volumeIdOf(name),
  name,
  state: 'ready',
  capacityBytes: 1_000_000,
  provisioning: 'reserved',
  overcommit: 1,
  accessTypes: ['mount'],
  fsType: 'xfs',
  createdWith: {},
  limits: { iops: 100 },
  ...change,
})

describe('openRecordFiles', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-records-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  const openTestRecords = (isDurable = true) =>
    openRecordFiles({
      directory: join(dir, 'volumes'),
      setAsideDirectory: join(dir, 'set-aside'),
      parse: parseVolumeRecord,
      isDurable,
      log: silentLog,
    })

  it.each([true, false])('reads saved records after a restart (durable: %s)', async (isDurable) => {
    const records = await openTestRecords(isDurable)
    await records.save(aRecord('b'))
    await records.saveWithoutSync(aRecord('a', { name: 'a', source: { kind: 'volume', id: volumeIdOf('b') } }))
    await records.save(aRecord('gone'))
    await records.remove(volumeIdOf('gone'))
    const reopenedRecords = await openTestRecords(isDurable)
    expect(reopenedRecords.list()).toEqual(
      [aRecord('a', { source: { kind: 'volume', id: volumeIdOf('b') } }), aRecord('b')].sort(byId),
    )
    expect(reopenedRecords.get(volumeIdOf('gone'))).toBeUndefined()
  })

  it('lists records sorted by id, with their changes', async () => {
    const records = await openTestRecords()
    for (const name of ['x', 'y', 'z']) await records.save(aRecord(name))
    expect(records.list().map(({ id }) => id)).toEqual(['x', 'y', 'z'].map(volumeIdOf).sort())
    await records.save(aRecord('y', { capacityBytes: 5 }))
    expect(records.list()).toContainEqual(aRecord('y', { capacityBytes: 5 }))
  })

  it('removes an unfinished write after a crash', async () => {
    await (await openTestRecords()).save(aRecord('a'))
    await writeFile(join(dir, 'volumes', `${volumeIdOf('a')}.json.tmp`), '{"half":')
    expect((await openTestRecords()).list()).toEqual([aRecord('a')])
    expect(await readdir(join(dir, 'volumes'))).toEqual([`${volumeIdOf('a')}.json`])
  })

  it.each([
    ['truncated', (text: string) => text.slice(0, 30)],
    ['empty', () => ''],
    ['of a later version', (text: string) => text.replace('"format":1', '"format":2')],
    ['of another volume', (text: string) => text.replace(volumeIdOf('a'), volumeIdOf('b'))],
    ['in an unknown state', (text: string) => text.replace('"ready"', '"unknown"')],
    ['of a negative size', (text: string) => text.replace('1000000', '-1')],
    ['a JSON array', () => '[]'],
  ])('sets a record aside unchanged if it is %s', async (_, damage) => {
    await (await openTestRecords()).save(aRecord('a'))
    const file = join(dir, 'volumes', `${volumeIdOf('a')}.json`)
    const damagedText = damage(await readFile(file, 'utf8'))
    await writeFile(file, damagedText)
    expect((await openTestRecords()).list()).toEqual([])
    const records = await openTestRecords()
    const setAsidePath = join(dir, 'set-aside', `volumes-${volumeIdOf('a')}.json`)
    expect(await records.findSetAside(volumeIdOf('a'))).toBe(setAsidePath)
    expect(await records.findSetAside(volumeIdOf('b'))).toBeUndefined()
    expect(await readFile(setAsidePath, 'utf8')).toBe(damagedText)
  })

  it('does not overwrite a record that is already set aside', async () => {
    await openTestRecords()
    for (const text of ['first', 'second']) {
      await writeFile(join(dir, 'volumes', `${volumeIdOf('a')}.json`), text)
      await openTestRecords()
    }
    const names = (await readdir(join(dir, 'set-aside'))).sort()
    const texts = await Promise.all(names.map((name) => readFile(join(dir, 'set-aside', name), 'utf8')))
    expect(texts).toEqual(['first', 'second'])
  })

  it('releases the reserve on a full disk, and fails if that is not sufficient', async () => {
    const directory = join(dir, 'volumes')
    let releaseCount = 0
    const reserve = { release: async () => void releaseCount++, renew: async () => {} }
    const records = await openRecordFiles({
      directory,
      setAsideDirectory: join(dir, 'set-aside'),
      parse: parseVolumeRecord,
      isDurable: false,
      reserve,
      log: silentLog,
    })
    await symlink('/dev/full', join(directory, `${volumeIdOf('a')}.json.tmp`))
    const save = records.save(aRecord('a'))
    await expect(save).rejects.toThrow(/cannot be written: the disk is full\. Delete volumes/)
    expect(releaseCount).toBe(1)
    await records.save(aRecord('a'))
    expect(records.get(volumeIdOf('a'))).toEqual(aRecord('a'))
  })
})

const byId = (a: VolumeRecord, b: VolumeRecord) => (a.id < b.id ? -1 : 1)
