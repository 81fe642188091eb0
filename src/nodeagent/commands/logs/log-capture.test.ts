import { writeSync } from 'node:fs'
import { type FileHandle, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { runFiles } from '../run-records.ts'
import { captureOutput, createOutputPipes, type LogCapture } from './log-capture.ts'

const LINE = `${'x'.repeat(1_023)}\n`

describe('the capture of a run whose pipes another process keeps open', () => {
  let directory: string
  let pipes: { stdout: FileHandle; stderr: FileHandle }
  let capture: LogCapture

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'log-capture-'))
    const files = runFiles(directory)
    pipes = await createOutputPipes(files)
    capture = await captureOutput({
      files,
      limits: { bytesMax: 10 * 1024 * 1024, filesMax: 2 },
      // The time to wait for the end has always passed already, as on a machine without a free processor.
      clock: { ...manualClock(), sleep: async () => {} },
      limitRate: async () => {},
      onError(error) {
        throw error
      },
    })
  })
  afterEach(async () => {
    await capture.close()
    await Promise.all([pipes.stdout.close(), pipes.stderr.close()])
    await rm(directory, { recursive: true })
  })
  const countLines = async () => (await readFile(runFiles(directory).log, 'utf8')).split('\n').length - 1

  it('contains, after a drain, all output that was written while the agent did not run', async () => {
    for (const { fd } of [pipes.stdout, pipes.stderr]) writeSync(fd, LINE.repeat(60)) // the agent is not running
    await capture.drain()
    expect(await countLines()).toBe(120)
    expect(capture.isEnded).toBe(false)
  })

  it('does not wait for a process that keeps writing', async () => {
    let isWriting = true
    const writeRepeatedly = async () => {
      while (isWriting) await pipes.stdout.write(LINE)
    }
    const writing = writeRepeatedly()
    await capture.drain()
    isWriting = false
    await writing
    expect(capture.isEnded).toBe(false)
  })

  it('does not wait for an attached client that does not read', async () => {
    let resume = () => {}
    const pause = new Promise<void>((resolve) => {
      resume = resolve
    })
    capture.onOutput(() => pause)
    await pipes.stdout.write(LINE)
    await capture.drain()
    expect(await countLines()).toBe(1)
    resume()
  })
})
