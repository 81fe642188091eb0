import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLogLines, type LogLines, WAITING_MAX } from './log-lines.ts'

describe('log lines', () => {
  let dir: string
  let fd: number
  let lines: LogLines
  const text = () => readFile(join(dir, 'log'), 'utf8')

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-log-'))
    fd = openSync(join(dir, 'log'), 'a')
    lines = createLogLines(fd)
  })
  afterEach(async () => {
    closeSync(fd)
    await rm(dir, { recursive: true })
  })

  it('SYS-11 are written completely and in order', async () => {
    const all = Array.from({ length: 1_000 }, (_, index) => `line ${index}\n`)
    for (const line of all) lines.write(line)
    await vi.waitFor(async () => expect(await text()).toBe(all.join('')))
  })

  it('SYS-11 that are queued at exit are written', async () => {
    lines.write('one\n')
    await vi.waitFor(async () => expect(await text()).toBe('one\n'))
    lines.write('two\n')
    lines.write('three\n')
    lines.flush()
    await vi.waitFor(async () => expect((await text()).split('\n').sort()).toEqual(['', 'one', 'three', 'two']))
  })

  it('SYS-11 beyond the bound are dropped and counted', async () => {
    const long = `${'x'.repeat(WAITING_MAX / 2)}\n`
    for (let count = 0; count < 5; count++) lines.write(long) // the first is written at once
    await vi.waitFor(async () => expect(await text()).toMatch(/"3 lines of this log were dropped"/))
    expect((await text()).match(/x\n/g)).toHaveLength(2)
  })

  it('SYS-11 on a full disk block neither the process nor its exit', async () => {
    const full = openSync('/dev/full', 'w')
    const onFull = createLogLines(full)
    onFull.write('one\n')
    await new Promise((resolve) => setImmediate(resolve))
    onFull.write('two\n')
    expect(() => onFull.flush()).not.toThrow()
    closeSync(full)
  })

  it('SYS-11 that could not be written are written when there is space again', async () => {
    const path = join(dir, 'pipe')
    execFileSync('mkfifo', [path])
    const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const onPipe = createLogLines(pipe)
    const line = `${'x'.repeat(999)}\n`
    for (let count = 0; count < 100; count++) onPipe.write(line) // more than a pipe holds
    const room = Buffer.alloc(WAITING_MAX)
    let read = 0
    await vi.waitFor(() => {
      onPipe.write(line)
      read += readSync(pipe, room)
      expect(read).toBeGreaterThan(100 * line.length)
      expect(read % line.length).toBe(0)
    })
    closeSync(pipe)
  })
})
