import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLineSplitter } from './log-line.ts'
import { listLogFiles, openLogWriter } from './log-writer.ts'
import { type LogOptions, readLog } from './read-log.ts'

const START_MS = Date.parse('2026-01-05T09:30:00.125Z')
const NEVER = new AbortController().signal
let directory: string
let path: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stowage-logs-'))
  path = join(directory, 'log')
})
afterEach(() => rm(directory, { recursive: true }))

/** Writes lines, one second after another. */
async function write(lines: readonly string[], bytesMax = 1_000_000): Promise<void> {
  const writer = await openLogWriter(path, { bytesMax, filesMax: 100 })
  const splitter = createLineSplitter('stdout')
  for (const [index, line] of lines.entries())
    await writer.append(splitter.add(Buffer.from(line), START_MS + index * 1_000))
  await writer.append(splitter.end(START_MS + lines.length * 1_000))
  await writer.close()
}
async function read(options: LogOptions = {}): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of readLog(path, options, { signal: NEVER })) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('readLog', () => {
  const lines = ['one\n', 'two\n', 'three\n', 'four']

  it('SYS-26 returns the last lines, the lines since a time, or a limited number of bytes', async () => {
    await write(lines)
    expect(await read()).toBe('one\ntwo\nthree\nfour')
    expect(await read({ tailLines: 2 })).toBe('three\nfour')
    expect(await read({ tailLines: 0 })).toBe('')
    expect(await read({ tailLines: 99 })).toBe('one\ntwo\nthree\nfour')
    expect(await read({ sinceMs: START_MS + 2_000 })).toBe('three\nfour')
    expect(await read({ limitBytes: 5 })).toBe('one\nt')
    expect(await read({ tailLines: 1, timestamps: true })).toBe('2026-01-05T09:30:04.125000000Z four')
  })

  it('SYS-26 counts the last lines over rotated files', async () => {
    const numbered = Array.from({ length: 40 }, (_, index) => `${index}\n`)
    await write(numbered, 150)
    expect((await listLogFiles(path)).length).toBeGreaterThan(5)
    for (const tailLines of [0, 1, 3, 17, 39, 40, 41]) {
      expect(await read({ tailLines })).toBe(numbered.slice(Math.max(0, 40 - tailLines)).join(''))
    }
  })

  it('SYS-26 follows a log over rotations until it is complete', async () => {
    const writer = await openLogWriter(path, { bytesMax: 150, filesMax: 100 })
    const splitter = createLineSplitter('stdout')
    let isComplete = false
    let notify = () => {}
    const followed = {
      isComplete: () => isComplete,
      changed: () => new Promise<void>((resolve) => (notify = resolve)),
    }
    const output = (async () => {
      let text = ''
      for await (const chunk of readLog(path, {}, { signal: NEVER, followed })) text += chunk
      return text
    })()
    const numbered = Array.from({ length: 30 }, (_, index) => `${index}\n`)
    for (const line of numbered) {
      await writer.append(splitter.add(Buffer.from(line), START_MS))
      notify()
      await new Promise((resolve) => setImmediate(resolve))
    }
    isComplete = true
    notify()
    expect(await output).toBe(numbered.join(''))
    await writer.close()
  })
})
