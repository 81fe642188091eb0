import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { listLogFiles, openLogWriter } from './log-writer.ts'

it('log files never exceed the maximum size and number', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'stowage-logs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'log')
  const writer = await openLogWriter(path, { bytesMax: 100, filesMax: 3 })
  for (let number = 0; number < 50; number++) await writer.append(Buffer.from(`line ${number}\n`))
  await writer.close()
  expect((await readdir(directory)).sort()).toEqual(['log', 'log.1', 'log.2'])
  const paths = await listLogFiles(path)
  expect(paths).toEqual([`${path}.2`, `${path}.1`, path])
  const texts = await Promise.all(paths.map((file) => readFile(file, 'utf8')))
  for (const text of texts) expect(text.length).toBeLessThanOrEqual(100)
  expect(texts.join('')).toMatch(/line 47\nline 48\nline 49\n$/)
})
