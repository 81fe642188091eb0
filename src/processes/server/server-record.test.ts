import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { findRunningServer, readServerRecord, SERVER_RECORD_FILE, writeServerRecord } from './server-record.ts'

describe('server record', () => {
  let dataDir: string
  const writeRecord = () =>
    writeServerRecord({
      dataDir,
      pkiDir: join(dataDir, 'pki'),
      runsControllers: true,
      isStoreShared: false,
      clock: systemClock(),
    })
  const file = () => join(dataDir, SERVER_RECORD_FILE)
  const changeRecord = async (fields: object) =>
    writeFile(file(), JSON.stringify({ ...JSON.parse(await readFile(file(), 'utf8')), ...fields }))

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-record-'))
  })
  afterEach(() => rm(dataDir, { recursive: true, force: true }))

  it('SYS-25 finds this process from its start until it removes the record', async () => {
    expect(await findRunningServer(dataDir)).toBeUndefined()
    const record = await writeRecord()
    expect(await findRunningServer(dataDir)).toMatchObject({ pid: process.pid, command: 'up', store: 'embedded' })
    expect((await findRunningServer(dataDir))?.url).toBeUndefined()
    await record.setReady('https://127.0.0.1:7443')
    expect(await findRunningServer(dataDir)).toMatchObject({ url: 'https://127.0.0.1:7443' })
    expect((await stat(file())).mode & 0o777).toBe(0o600)
    await record.remove()
    expect(await findRunningServer(dataDir)).toBeUndefined()
  })

  it('SYS-25 finds no process if the PID has another start time or the machine was rebooted', async () => {
    await writeRecord()
    const { startTicks } = (await readServerRecord(dataDir))!
    await changeRecord({ startTicks: `${Number(startTicks) + 1}` })
    expect(await findRunningServer(dataDir)).toBeUndefined()
    await changeRecord({ startTicks, bootId: 'earlier' })
    expect(await findRunningServer(dataDir)).toBeUndefined()
    expect(await readServerRecord(dataDir)).toMatchObject({ pid: process.pid })
  })

  it('does not remove the record of another process', async () => {
    const record = await writeRecord()
    await changeRecord({ pid: 1 })
    await record.remove()
    expect(await readServerRecord(dataDir)).toMatchObject({ pid: 1 })
  })

  it.each([
    ['pid', 0],
    ['startTicks', 5],
    ['bootId', null],
    ['version', undefined],
    ['command', 'down'],
    ['startTime', 'yesterday'],
    ['store', 'paper'],
    ['pkiDir', ['pki']],
    ['url', 7443],
    ['url', 'nowhere'],
  ])('SYS-25 ignores a record whose %s is %j', async (field, value) => {
    await writeRecord()
    await changeRecord({ [field]: value })
    expect(await readServerRecord(dataDir)).toBeUndefined()
  })

  it.each(['', '{', 'null', '{"pid":-1}', '{"pid":1}'])('ignores the damaged record %j', async (text) => {
    await writeFile(file(), text)
    expect(await readServerRecord(dataDir)).toBeUndefined()
  })
})
