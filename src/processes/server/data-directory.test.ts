import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { type DataDirectoryOptions, openDataDirectory } from './data-directory.ts'

let dataDir: string
let options: DataDirectoryOptions
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-data-'))
  options = {
    dataDir,
    pkiDir: join(dataDir, 'pki'),
    location: { is: 'embedded' },
    clock: systemClock(),
    log: silentLog,
    encryptionProviderConfig: undefined,
    etcdTls: {},
    historyMinutes: 5,
    scrubBytesPerSecond: 0,
    upgradesEtcdFormat: false,
  }
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

it('SYS-20 creates only the store directory if another server uses the data directory', async () => {
  const { store } = await openDataDirectory(options)
  await rm(dataDir, { recursive: true })
  await mkdir(dataDir)
  await expect(openDataDirectory(options)).rejects.toThrow('is in use by another Stowage process')
  expect(await readdir(dataDir, { recursive: true })).toEqual(['store'])
  await store.close().catch(() => {})
})

it('names the directory that caused a system error, and its flag', async () => {
  const file = join(dataDir, 'file')
  await writeFile(file, '')
  await expect(openDataDirectory({ ...options, pkiDir: file })).rejects.toThrow(
    `Cannot use ${file} as credentials directory: it is a file. Choose another with --pki-dir.`,
  )
  await expect(openDataDirectory({ ...options, dataDir: file })).rejects.toThrow(
    `Cannot use ${file} as data directory: it is a file. Choose another with --data-dir.`,
  )
})
