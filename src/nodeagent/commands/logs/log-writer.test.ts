import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { listLogFiles, openLogWriter } from './log-writer.ts'

it('log files never exceed the maximum size and number', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'stowage-logs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'log')
  const writer = await openLogWriter(path, { bytesMax: 200, filesMax: 3 })
  for (let number = 0; number < 50; number++) await writer.append(Buffer.from(`line ${number}\n`))
  await writer.close()
  const files = (await readdir(directory)).sort()
  expect(files).toEqual(['log', 'log.1', 'log.2'])
  for (const file of files) expect((await readFile(join(directory, file))).length).toBeLessThanOrEqual(200)
  expect(await readFile(path, 'utf8')).toMatch(/line 48\nline 49\n$/)
  expect(await listLogFiles(path)).toEqual([`${path}.2`, `${path}.1`, path])
})
