import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDriverLog } from './driver-log.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-log-'))
})
afterAll(() => rm(dir, { recursive: true }))

it("keeps a driver's output in two files of bounded size", async () => {
  const path = join(dir, 'bounded')
  const log = await openDriverLog(path, { bytesMax: 100 })
  const lines = Array.from({ length: 50 }, (_, index) => Buffer.from(`line ${index} ${'x'.repeat(20)}\n`))
  await log.follow(Readable.from(lines))
  await log.close()
  const [current, previous] = [await readFile(path, 'utf8'), await readFile(`${path}.1`, 'utf8')]
  expect(current.length).toBeLessThanOrEqual(100)
  expect(previous.length).toBeLessThanOrEqual(100)
  expect(`${previous}${current}`).toBe(lines.slice(-(previous + current).split('\n').length + 1).join(''))
})

it('quotes the beginning and the end of long output', async () => {
  const log = await openDriverLog(join(dir, 'long'))
  const lines = Array.from({ length: 2_000 }, (_, index) => Buffer.from(`line ${index}\n`))
  await log.follow(Readable.from(lines))
  const expectedNumbers = [0, 1, 2, undefined, 1995, 1996, 1997, 1998, 1999]
  expect(log.quoteLines()).toEqual(expectedNumbers.map((number) => (number === undefined ? '…' : `line ${number}`)))
  await log.close()
})

it('quotes the lines of the current process without control characters', async () => {
  const log = await openDriverLog(join(dir, 'tail'))
  await log.follow(Readable.from([Buffer.from('earlier\n')]))
  log.startRun()
  await log.follow(Readable.from([Buffer.from('\u001b[31mfailed\u001b[0m\r\n\n\u0007bell\n')]))
  expect(log.quoteLines()).toEqual(['failed', 'bell'])
  await log.close()
})
