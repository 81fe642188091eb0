import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLogLines, type LogLines, QUEUED_CHARACTERS_MAX } from './log-lines.ts'

describe('log lines', () => {
  let dir: string
  let fd: number
  let lines: LogLines
  const readLog = () => readFile(join(dir, 'log'), 'utf8')

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-log-'))
    fd = openSync(join(dir, 'log'), 'a')
    lines = createLogLines(fd)
  })
  afterEach(async () => {
    closeSync(fd)
    await rm(dir, { recursive: true })
  })

  it('are written completely and in order', async () => {
    const allLines = Array.from({ length: 1_000 }, (_, index) => `line ${index}\n`)
    for (const line of allLines) lines.write(line)
    await vi.waitFor(async () => expect(await readLog()).toBe(allLines.join('')))
  })

  it('are written at exit if they are queued', async () => {
    lines.write('one\n')
    await vi.waitFor(async () => expect(await readLog()).toBe('one\n'))
    lines.write('two\n')
    lines.write('three\n')
    lines.flush()
    await vi.waitFor(async () => expect((await readLog()).split('\n').sort()).toEqual(['', 'one', 'three', 'two']))
  })

  it('are dropped and counted if the queue is full', async () => {
    const longLine = `${'x'.repeat(QUEUED_CHARACTERS_MAX / 2)}\n`
    for (let count = 0; count < 5; count++) lines.write(longLine) // the first is written immediately
    await vi.waitFor(async () => expect(await readLog()).toMatch(/"dropped log lines: 3"/))
    expect((await readLog()).match(/x\n/g)).toHaveLength(2)
  })

  it('cause no error at exit if the disk is full', async () => {
    const fullDevice = openSync('/dev/full', 'w')
    const linesToFullDevice = createLogLines(fullDevice)
    linesToFullDevice.write('one\n')
    await new Promise((resolve) => setImmediate(resolve))
    linesToFullDevice.write('two\n')
    expect(() => linesToFullDevice.flush()).not.toThrow()
    closeSync(fullDevice)
  })

  it('are written later if the pipe is full', async () => {
    const path = join(dir, 'pipe')
    execFileSync('mkfifo', [path])
    const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const linesToPipe = createLogLines(pipe)
    const line = `${'x'.repeat(999)}\n`
    for (let count = 0; count < 100; count++) linesToPipe.write(line) // more than the capacity of a pipe
    const buffer = Buffer.alloc(QUEUED_CHARACTERS_MAX)
    let readBytes = 0
    await vi.waitFor(() => {
      linesToPipe.write(line)
      readBytes += readSync(pipe, buffer)
      expect(readBytes).toBeGreaterThan(100 * line.length)
      expect(readBytes % line.length).toBe(0)
    })
    closeSync(pipe)
  })
})
