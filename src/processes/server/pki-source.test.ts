import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { copyPkiSource, followPkiSource } from './pki-source.ts'

const FILES = ['ca.crt', 'ca.key', 'encryption.yaml', 'service-account.key', 'tokens.json']

let dir: string
const sourcePath = (file = '') => join(dir, 'source', file)
const targetPath = (file = '') => join(dir, 'target', file)
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-pki-source-'))
  await mkdir(sourcePath())
  for (const file of FILES) await writeFile(sourcePath(file), `first ${file}`)
})
afterEach(() => rm(dir, { recursive: true, maxRetries: 5 })) // a copy may still be in progress

const clock = manualClock()
const options = () => ({ pkiSource: sourcePath(), pkiDir: targetPath(), clock, log: silentLog })

it('copies the shared credentials, but not the certificates of the server that created them', async () => {
  await writeFile(sourcePath('serving.crt'), 'of another server')
  await copyPkiSource(options())
  expect((await readdir(targetPath())).sort()).toEqual(FILES)
  expect(await readFile(targetPath('ca.key'), 'utf8')).toBe('first ca.key')
  expect((await stat(targetPath('ca.key'))).mode & 0o777).toBe(0o600)
})

it('copies nothing without a source', async () => {
  await copyPkiSource({ ...options(), pkiSource: undefined })
  expect(await readdir(dir)).toEqual(['source'])
})

it('rejects a source without the CA or the token key, and names the missing files', async () => {
  await rm(sourcePath('ca.key'))
  await rm(sourcePath('service-account.key'))
  await expect(copyPkiSource(options())).rejects.toThrow(
    / has no ca\.key, service-account\.key\. Copy the pki directory/,
  )
  expect(await readdir(dir)).toEqual(['source'])
})

it('names the file of an unreadable source, and --pki-dir for an unusable target', async () => {
  await mkdir(sourcePath('revoked-certificates'))
  await expect(copyPkiSource(options())).rejects.toThrow(
    `--pki-source ${sourcePath()}: ${sourcePath('revoked-certificates')} cannot be read: EISDIR`,
  )
  await rm(sourcePath('revoked-certificates'), { recursive: true })
  await writeFile(targetPath(), 'a file')
  await expect(copyPkiSource(options())).rejects.toThrow(
    `Cannot use ${targetPath()} as credentials directory: it is a file. Choose another with --pki-dir.`,
  )
  await rm(targetPath())
  await mkdir(targetPath('tokens.json'), { recursive: true })
  await expect(copyPkiSource(options())).rejects.toThrow(
    new RegExp(`Cannot use ${targetPath()} as credentials directory: EISDIR.* Choose another with --pki-dir`),
  )
})

it('SYS-22 copies a changed file, and keeps the previous files while a required one is missing', async () => {
  await copyPkiSource(options())
  const stop = new AbortController()
  await followPkiSource(options(), stop.signal)
  const waitForTokens = async (content: string) => {
    while ((await readFile(targetPath('tokens.json'), 'utf8')) !== content) {
      await clock.advance(400)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await rm(sourcePath('ca.key'))
  await writeFile(sourcePath('tokens.json'), 'second')
  for (let poll = 0; poll < 5; poll++) {
    await clock.advance(400)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await readFile(targetPath('tokens.json'), 'utf8')).toBe('first tokens.json')
  await writeFile(sourcePath('ca.key'), 'first ca.key')
  await waitForTokens('second')
  stop.abort()
})
