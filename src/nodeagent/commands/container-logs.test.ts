import { appendFile, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import { createHostDisk } from '../disk/host-disk.ts'
import { agentPaths } from '../paths.ts'
import { LOG_CHECK_MS, rotateLog, runLogRotation } from './container-logs.ts'

const LIMITS = { bytesMax: 10, filesMax: 3 }
let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stowage-logs-'))
  path = join(directory, 'log')
})
afterEach(() => rm(directory, { recursive: true }))

const readFiles = async (root: string) =>
  Object.fromEntries(
    await Promise.all(
      (await readdir(root)).sort().map(async (name) => [name, await readFile(join(root, name), 'utf8')]),
    ),
  )

describe('rotateLog', () => {
  it('SYS-7 keeps a log below its size and ignores a missing one', async () => {
    await rotateLog(path, LIMITS)
    await writeFile(path, '0123456789')
    await rotateLog(path, LIMITS)
    expect(await readFiles(directory)).toEqual({ log: '0123456789' })
  })

  it('SYS-7 keeps the number of files while a process keeps its log open', async () => {
    const output = await open(path, 'a')
    for (const text of ['first line.', 'second line', 'third line.', 'fourth line']) {
      await output.write(text)
      await rotateLog(path, LIMITS)
    }
    await output.write('end')
    await output.close()
    expect(await readFiles(directory)).toEqual({ log: 'end', 'log.1': 'ourth line', 'log.2': 'hird line.' })
  })
})

describe('runLogRotation', () => {
  it('SYS-7 rotates the logs of all containers every 10 s', async () => {
    const clock = manualClock()
    const run = createRun({ clock })
    const disk = createHostDisk({ mounts: createMounts({ run }), run })
    const paths = agentPaths(directory)
    const logs = ['a', 'b'].map((name) => join(paths.container('uid', name), '0', 'log'))
    for (const log of logs) {
      await mkdir(dirname(log), { recursive: true })
      await writeFile(log, '0123456789ab')
    }
    const stop = new AbortController()
    const rotation = runLogRotation({ paths, disk, clock, log: silentLog, limits: LIMITS }, stop.signal)
    const waitUntilRotated = async (expectedFiles: Record<string, string>) => {
      for (const log of logs) await expect.poll(() => readFiles(dirname(log))).toEqual(expectedFiles)
    }
    await waitUntilRotated({ log: '', 'log.1': '23456789ab' })
    for (const log of logs) await appendFile(log, 'next output')
    await clock.advance(LOG_CHECK_MS)
    await waitUntilRotated({ log: '', 'log.1': 'ext output', 'log.2': '23456789ab' })
    stop.abort()
    await rotation
  })
})
