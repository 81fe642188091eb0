import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { formatDeviceNumber } from './device-number.ts'
import { ProgramFailedError } from './errors.ts'
import { createLoops } from './loops.ts'
import type { Run } from './run.ts'

let pool: string
let file: string

beforeEach(async () => {
  pool = await mkdtemp(join(tmpdir(), 'stowage-loops-'))
  file = join(pool, 'volume')
  await writeFile(file, 'data')
})
afterEach(() => rm(pool, { recursive: true, force: true }))

/** Creates a Run that returns the output of `respond` and records the commands. */
function createFakeRun(respond: (command: string) => string | Promise<string>) {
  const commands: string[] = []
  const run: Run = async (program, args) => {
    const command = [program, ...args].join(' ')
    commands.push(command)
    return { stdout: await respond(command), stderr: '', code: 0 }
  }
  return { commands, run }
}

const failLosetup = (stderr: string): never => {
  throw new ProgramFailedError(['losetup'], { code: 1, stderr, reason: 'exited with 1' })
}

interface ListedLoop {
  readonly device: string
  readonly ro: boolean
  readonly offset?: number
  readonly sizelimit?: number
}

async function formatLoopList(devices: readonly ListedLoop[]): Promise<string> {
  const { dev, ino } = await stat(file, { bigint: true })
  return JSON.stringify({
    loopdevices: devices.map(({ device, ro, offset = 0, sizelimit = 0 }) => ({
      name: device,
      'back-file': file,
      'back-ino': Number(ino),
      'back-maj:min': formatDeviceNumber(dev),
      ro,
      autoclear: false,
      offset,
      sizelimit,
    })),
  })
}

const createTestLoops = (run: Run, clearedDevices: string[] = []) =>
  createLoops({
    run,
    clock: manualClock(),
    mounts: { mountsOf: async () => [] },
    clearLimits: async (device) => void clearedDevices.push(device),
    sysBlock: join(pool, 'sys'),
  })

describe('attach', () => {
  it('runs one command with direct IO and --nooverlap', async () => {
    const { run, commands } = createFakeRun(() => '/dev/loop4\n')
    expect(await createTestLoops(run).attach(file)).toBe('/dev/loop4')
    expect(commands).toEqual([`losetup --find --show --nooverlap --direct-io=on ${file}`])
  })

  it('serializes concurrent calls for one file', async () => {
    let runningCount = 0
    let runningMax = 0
    const { run } = createFakeRun(async () => {
      runningMax = Math.max(runningMax, ++runningCount)
      await new Promise((resolve) => setImmediate(resolve))
      runningCount--
      return '/dev/loop4\n'
    })
    const loops = createTestLoops(run)
    await Promise.all(Array.from({ length: 20 }, () => loops.attach(file)))
    expect(runningMax).toBe(1)
  })

  it('uses the device that losetup attached before direct IO failed', async () => {
    const { run, commands } = createFakeRun((command) => {
      if (command.includes('--direct-io')) failLosetup('losetup: /dev/loop4: set direct io failed: Invalid argument')
      return command.includes('--list')
        ? formatLoopList([{ device: '/dev/loop4', ro: false }])
        : failLosetup('a second device was attached')
    })
    expect(await createTestLoops(run).attach(file)).toBe('/dev/loop4')
    expect(commands).toHaveLength(2)
  })

  it('attaches a writable device in addition to a read-only one', async () => {
    const { run, commands } = createFakeRun((command) => {
      if (command.includes('--nooverlap')) failLosetup('losetup: overlapping read-only loop device exists')
      return command.includes('--list') ? formatLoopList([{ device: '/dev/loop1', ro: true }]) : '/dev/loop2\n'
    })
    expect(await createTestLoops(run).attach(file)).toBe('/dev/loop2')
    expect(commands.at(-1)).toBe(`losetup --find --show --direct-io=on ${file}`)
  })

  it('reuses the writable device if there is also a read-only one', async () => {
    const { run } = createFakeRun((command) => {
      if (command.includes('--nooverlap')) failLosetup('losetup: overlapping read-only loop device exists')
      return command.includes('--list')
        ? formatLoopList([
            { device: '/dev/loop1', ro: true },
            { device: '/dev/loop2', ro: false },
          ])
        : failLosetup('a second device was attached')
    })
    expect(await createTestLoops(run).attach(file)).toBe('/dev/loop2')
  })

  it('fails if another program has attached a part of the file for writing', async () => {
    const { run } = createFakeRun((command) => {
      if (command.includes('--nooverlap')) failLosetup('losetup: overlapping loop device exists')
      return command.includes('--list')
        ? formatLoopList([{ device: '/dev/loop3', ro: false, offset: 4096 }])
        : failLosetup('no')
    })
    await expect(createTestLoops(run).attach(file)).rejects.toThrow('another program has attached it as /dev/loop3')
  })

  it('attaches a new read-only device if the existing one shows only a part of the file', async () => {
    const { run, commands } = createFakeRun((command) =>
      command.includes('--list')
        ? formatLoopList([{ device: '/dev/loop1', ro: true, sizelimit: 4096 }])
        : '/dev/loop2\n',
    )
    expect(await createTestLoops(run).attach(file, { readOnly: true })).toBe('/dev/loop2')
    expect(commands.at(-1)).toBe(`losetup --find --show --read-only --direct-io=on ${file}`)
  })

  it('clears the read-only flag that another volume left on the loop number', async () => {
    await mkdir(join(pool, 'sys', 'loop4'), { recursive: true })
    await writeFile(join(pool, 'sys', 'loop4', 'ro'), '1\n')
    const { run, commands } = createFakeRun(() => '/dev/loop4\n')
    await createTestLoops(run).attach(file)
    expect(commands.at(-1)).toBe('blockdev --setrw /dev/loop4')
  })

  it('fails for a missing file, and names its path', async () => {
    const { run, commands } = createFakeRun(() => '/dev/loop4\n')
    await expect(createTestLoops(run).attach(join(pool, 'gone'))).rejects.toThrow(
      `Cannot attach ${pool}/gone: the file does not exist`,
    )
    expect(commands).toEqual([])
  })
})

describe('detach', () => {
  it('does nothing if the loop number now belongs to another file', async () => {
    await mkdir(join(pool, 'sys', 'loop4', 'loop'), { recursive: true })
    await writeFile(join(pool, 'sys', 'loop4', 'loop', 'backing_file'), '/pool/another\n')
    const clearedDevices: string[] = []
    const { run, commands } = createFakeRun(() => formatLoopList([]))
    expect(await createTestLoops(run, clearedDevices).detach('/dev/loop4', { file })).toEqual({ is: 'detached' })
    expect(commands.filter((command) => command.includes('--detach'))).toEqual([])
    expect(clearedDevices).toEqual([])
  })

  it('clears the limits first, because they stay with the loop number', async () => {
    const backingFile = join(pool, 'sys', 'loop4', 'loop', 'backing_file')
    await mkdir(join(pool, 'sys', 'loop4', 'loop'), { recursive: true })
    await writeFile(backingFile, `${file}\n`)
    const clearedDevices: string[] = []
    const { run } = createFakeRun(async () => {
      expect(clearedDevices).toEqual(['/dev/loop4'])
      await rm(backingFile)
      return ''
    })
    expect(await createTestLoops(run, clearedDevices).detach('/dev/loop4', { file })).toEqual({ is: 'detached' })
    expect(clearedDevices).toEqual(['/dev/loop4'])
  })

  it('waits for programs that have the device open, and then returns pending', async () => {
    await mkdir(join(pool, 'sys', 'loop4', 'loop'), { recursive: true })
    await writeFile(join(pool, 'sys', 'loop4', 'loop', 'backing_file'), `${file}\n`)
    const clock = manualClock()
    const { run } = createFakeRun(() => '')
    const loops = createLoops({
      run,
      clock,
      mounts: { mountsOf: async () => [] },
      clearLimits: async () => {},
      sysBlock: join(pool, 'sys'),
    })
    let result: unknown
    const detachRun = loops.detach('/dev/loop4', { file }).then((detachment) => {
      result = detachment
    })
    while (result === undefined) {
      await clock.nextTurn() // detach() reads files, which requires turns of the event loop
      await clock.advance(100)
    }
    await detachRun
    expect(result).toEqual({
      is: 'pending',
      message: 'a process has /dev/loop4 open, and it is detached when that process closes it',
    })
  })
})
