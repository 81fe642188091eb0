import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { copyPkiSource, followPkiSource } from './pki-source.ts'

const FILES = ['ca.crt', 'ca.key', 'encryption.yaml', 'service-account.key', 'tokens.json']

let dir: string
const source = (file = '') => join(dir, 'source', file)
const target = (file = '') => join(dir, 'target', file)
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-pki-source-'))
  await mkdir(source())
  for (const file of FILES) await writeFile(source(file), `first ${file}`)
})
afterEach(() => rm(dir, { recursive: true }))

const clock = manualClock()
const options = () => ({ pkiSource: source(), pkiDir: target(), clock, log: silentLog })

it('SYS-8 a server copies the shared credentials, and not the certificates of the server that created them', async () => {
  await writeFile(source('serving.crt'), 'of another server')
  await copyPkiSource(options())
  expect((await readdir(target())).sort()).toEqual(FILES)
  expect(await readFile(target('ca.key'), 'utf8')).toBe('first ca.key')
  expect((await stat(target('ca.key'))).mode & 0o777).toBe(0o600)
})

it('SYS-8 a server without a source copies nothing', async () => {
  await copyPkiSource({ ...options(), pkiSource: undefined })
  expect(await readdir(dir)).toEqual(['source'])
})

it('SYS-8 a source without the CA or the key of tokens is rejected with the names of the files', async () => {
  await rm(source('ca.key'))
  await rm(source('service-account.key'))
  await expect(copyPkiSource(options())).rejects.toThrow(
    / has no ca\.key, service-account\.key\. Copy the pki directory/,
  )
  expect(await readdir(dir)).toEqual(['source'])
})

it('SYS-8 a server copies a changed file, and keeps its files while a required one is missing', async () => {
  await copyPkiSource(options())
  const stop = new AbortController()
  await followPkiSource(options(), stop.signal)
  const waitForTokens = async (content: string) => {
    while ((await readFile(target('tokens.json'), 'utf8')) !== content) {
      await clock.advance(400)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await rm(source('ca.key'))
  await writeFile(source('tokens.json'), 'second')
  for (let poll = 0; poll < 5; poll++) {
    await clock.advance(400)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await readFile(target('tokens.json'), 'utf8')).toBe('first tokens.json')
  await writeFile(source('ca.key'), 'first ca.key')
  await waitForTokens('second')
  stop.abort()
})
