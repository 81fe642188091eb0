import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { volumeIdOf } from './ids.ts'
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

describe('record files', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-records-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  const open = (isDurable = true) =>
    openRecordFiles({
      directory: join(dir, 'volumes'),
      setAsideDirectory: join(dir, 'set-aside'),
      parse: parseVolumeRecord,
      isDurable,
      log: silentLog,
    })

  it.each([true, false])('SYS-6 what was saved is there after a restart (durable: %s)', async (isDurable) => {
    const records = await open(isDurable)
    await records.save(aRecord('b'))
    await records.saveLightly(aRecord('a', { name: 'a', source: { kind: 'volume', id: volumeIdOf('b') } }))
    await records.save(aRecord('gone'))
    await records.remove(volumeIdOf('gone'))
    const again = await open(isDurable)
    expect(again.list()).toEqual(
      [aRecord('a', { source: { kind: 'volume', id: volumeIdOf('b') } }), aRecord('b')].sort(byId),
    )
    expect(again.get(volumeIdOf('gone'))).toBeUndefined()
  })

  it('SYS-6 a list is in the order of ids and shows every change', async () => {
    const records = await open()
    for (const name of ['x', 'y', 'z']) await records.save(aRecord(name))
    expect(records.list().map(({ id }) => id)).toEqual(['x', 'y', 'z'].map(volumeIdOf).sort())
    await records.save(aRecord('y', { capacityBytes: 5 }))
    expect(records.list()).toContainEqual(aRecord('y', { capacityBytes: 5 }))
  })

  it('SYS-6 a file that was being written when the driver died says nothing', async () => {
    await (await open()).save(aRecord('a'))
    await writeFile(join(dir, 'volumes', `${volumeIdOf('a')}.json.tmp`), '{"half":')
    expect((await open()).list()).toEqual([aRecord('a')])
    expect(await readdir(join(dir, 'volumes'))).toEqual([`${volumeIdOf('a')}.json`])
  })

  it.each([
    ['cut short', (text: string) => text.slice(0, 30)],
    ['empty', () => ''],
    ['of a later version', (text: string) => text.replace('"format":1', '"format":2')],
    ['of another volume', (text: string) => text.replace(volumeIdOf('a'), volumeIdOf('b'))],
    ['in an unknown state', (text: string) => text.replace('"ready"', '"odd"')],
    ['of a negative size', (text: string) => text.replace('1000000', '-1')],
    ['a list', () => '[]'],
  ])('SYS-6 a record that is %s is set aside, whole', async (_, damage) => {
    await (await open()).save(aRecord('a'))
    const file = join(dir, 'volumes', `${volumeIdOf('a')}.json`)
    const damaged = damage(await readFile(file, 'utf8'))
    await writeFile(file, damaged)
    expect((await open()).list()).toEqual([])
    expect(await readFile(join(dir, 'set-aside', `${volumeIdOf('a')}.json`), 'utf8')).toBe(damaged)
  })
})

const byId = (a: VolumeRecord, b: VolumeRecord) => (a.id < b.id ? -1 : 1)
