import { createHash } from 'node:crypto'
import { open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { readStart } from './content.ts'
import { NoSpaceError, NotBlankError } from './errors.ts'
import { minimumBytes } from './filesystems.ts'
import { type HostTrial, startHostTrial } from './host.fixture.ts'
import { FILESYSTEM_TYPES, type FilesystemType } from './host.ts'

const MIB = 1024 * 1024
const facts = await probeThisMachine()
const missing = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])
const because = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

describe.skipIf(missing)(`real file systems${because(missing)}`, () => {
  let trial: HostTrial
  beforeEach(async () => {
    trial = await startHostTrial()
  })
  afterEach(() => trial.dispose())

  /** A file system on its own device, mounted. */
  async function staged(type: FilesystemType, bytes = minimumBytes(type), name = 'volume') {
    const { file, device } = await trial.device(name, bytes)
    await trial.host.filesystems.make(device, type, { keepReservation: false })
    const stage = await trial.directory(`${name}-stage`)
    await trial.host.mounts.mount(device, stage, type)
    return { file, device, stage }
  }

  async function growDevice(file: string, device: string, bytes: number): Promise<void> {
    await trial.host.files.extend(file, bytes)
    await trial.host.loops.refreshSize(device)
  }

  describe.each(FILESYSTEM_TYPES)('%s', (type) => {
    it('SYS-6 is made on a blank device of the smallest size, and found there afterwards', async () => {
      const { filesystems } = trial.host
      const { device } = await trial.device('volume', minimumBytes(type))
      expect(await filesystems.probe(device)).toEqual({ is: 'blank' })
      await filesystems.make(device, type, { keepReservation: true, label: 'stowage' })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type, label: 'stowage' })
      expect(await filesystems.sizeBytes(device, type)).toBe(minimumBytes(type))
    })

    it('SYS-6 keeps a reservation when told so', async () => {
      const { files, loops, filesystems } = trial.host
      const file = join(trial.pool, 'reserved')
      await files.reserve(file, 320 * MIB)
      await filesystems.make(await loops.attach(file), type, { keepReservation: true })
      expect((await files.sizes(file))?.allocatedBytes).toBeGreaterThanOrEqual(320 * MIB)
    })

    it('SYS-6 is never made over a file system, of its own type or another', async () => {
      const { filesystems } = trial.host
      for (const there of FILESYSTEM_TYPES) {
        const { file, device } = await trial.device(`has-${there}`, minimumBytes('xfs'))
        await filesystems.make(device, there, { keepReservation: false })
        const before = await digestOf(file)
        const again = filesystems.make(device, type, { keepReservation: false })
        await expect(again).rejects.toThrow(NotBlankError)
        await expect(again).rejects.toThrow(`Cannot make ${type} on ${device}: it holds ${there}`)
        expect(await digestOf(file)).toBe(before)
      }
    })

    it('SYS-6 is never made over data that has no name', async () => {
      const { filesystems } = trial.host
      const { file, device } = await trial.device('raw', minimumBytes(type))
      await writeAt(file, 'precious', 500_000)
      const { device: fresh } = await reattach(file, device)
      await expect(filesystems.make(fresh, type, { keepReservation: false })).rejects.toThrow('no known signature')
      expect((await readFile(file)).subarray(500_000, 500_008).toString()).toBe('precious')
    })

    it('SYS-6 is made anew where the record says that a make was cut short', async () => {
      const { filesystems } = trial.host
      const { device } = await trial.device('volume', minimumBytes(type))
      await filesystems.make(device, type, { keepReservation: false })
      await filesystems.make(device, type, { keepReservation: false, wasInterrupted: true })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type })
    })

    it('SYS-6 is not made anew over another type, whatever the record says', async () => {
      const { filesystems } = trial.host
      const other = type === 'xfs' ? 'ext4' : 'xfs'
      const { device } = await trial.device('volume', minimumBytes('xfs'))
      await filesystems.make(device, other, { keepReservation: false })
      const anew = filesystems.make(device, type, { keepReservation: false, wasInterrupted: true })
      await expect(anew).rejects.toThrow(NotBlankError)
    })

    it('SYS-6 is frozen while it is copied, and thawed after a failure too', async () => {
      const { filesystems } = trial.host
      const { stage } = await staged(type)
      const failed = filesystems.whileFrozen(stage, async () => {
        throw new Error('the copy failed')
      })
      await expect(failed).rejects.toThrow('the copy failed')
      await writeFile(join(stage, 'written after'), 'it would hang here if it were frozen')
      await filesystems.thaw(stage) // not frozen: nothing to do
    })

    it('SYS-6 left frozen by a killed driver is thawed at start', async () => {
      const { filesystems } = trial.host
      const { stage } = await staged(type)
      await trial.run('fsfreeze', ['--freeze', stage])
      await filesystems.thaw(stage)
      await writeFile(join(stage, 'written after'), 'data')
    })

    it('SYS-6 a frozen copy can be mounted beside its original and has the same data', async () => {
      const { files, loops, filesystems, mounts } = trial.host
      const { file, stage } = await staged(type)
      const data = Buffer.alloc(2 * MIB, 'checked data')
      await writeFile(join(stage, 'data'), data)
      const copy = join(trial.pool, 'copy')
      await filesystems.whileFrozen(stage, () => files.copy(file, copy))

      const device = await loops.attach(copy)
      await filesystems.newUuid(device, type, join(trial.pool, 'scratch'))
      await filesystems.newUuid(device, type, join(trial.pool, 'scratch')) // as after a crash
      const beside = await trial.directory('beside')
      await mounts.mount(device, beside, type)
      expect((await readFile(join(beside, 'data'))).equals(data)).toBe(true)
      expect(await readdir(trial.pool)).not.toContain('scratch')
    })
  })

  it('SYS-6 a path that is no mount point is never frozen: that would be the node’s own file system', async () => {
    const plain = await trial.directory('plain')
    let hasRun = false
    const frozen = trial.host.filesystems.whileFrozen(plain, async () => {
      hasRun = true
    })
    await expect(frozen).rejects.toThrow('nothing is mounted there')
    expect(hasRun).toBe(false)
  })

  it('SYS-6 a device that is not there is a failure, not a blank device', async () => {
    await expect(trial.host.filesystems.probe('/dev/loop-of-no-one')).rejects.toThrow('ENOENT')
  })

  it('REX-1 xfs grows while it is mounted and written to', async () => {
    const { filesystems, usage } = trial.host
    const { file, device, stage } = await staged('xfs', 300 * MIB)
    const data = Buffer.alloc(8 * MIB, 'checked data')
    const writing = (async () => {
      for (let round = 0; round < 5; round++) await writeFile(join(stage, `data-${round}`), data)
    })()
    await growDevice(file, device, 600 * MIB)
    expect(await filesystems.grow(device, stage, 'xfs')).toEqual({ is: 'grown' })
    await writing
    expect((await usage.ofFilesystem(stage)).totalBytes).toBeGreaterThan(500 * MIB)
    for (let round = 0; round < 5; round++)
      expect((await readFile(join(stage, `data-${round}`))).equals(data)).toBe(true)
    expect(await filesystems.grow(device, stage, 'xfs'), 'again').toEqual({ is: 'grown' })

    await trial.host.mounts.unmount(stage)
    expect(await filesystems.sizeBytes(device, 'xfs')).toBe(600 * MIB)
    expect(await filesystems.grow(device, undefined, 'xfs')).toMatchObject({ is: 'needs mount' })
  })

  it('REX-1 ext4 grows while it is not mounted', async () => {
    const { filesystems, mounts } = trial.host
    const { file, device, stage } = await staged('ext4', 64 * MIB)
    await writeFile(join(stage, 'data'), 'checked data')
    await mounts.unmount(stage)
    await growDevice(file, device, 256 * MIB)
    expect(await filesystems.sizeBytes(device, 'ext4')).toBe(64 * MIB)
    expect(await filesystems.grow(device, undefined, 'ext4')).toEqual({ is: 'grown' })
    expect(await filesystems.grow(device, undefined, 'ext4'), 'again').toEqual({ is: 'grown' })
    expect(await filesystems.sizeBytes(device, 'ext4')).toBe(256 * MIB)
    await mounts.mount(device, stage, 'ext4')
    expect(await readFile(join(stage, 'data'), 'utf8')).toBe('checked data')
  })

  const cannotGrow = skipReason(facts, ['ext4OnlineGrowth'])
  it.skipIf(cannotGrow)(`REX-1 ext4 grows while it is mounted${because(cannotGrow)}`, async () => {
    const { filesystems, usage } = trial.host
    const { file, device, stage } = await staged('ext4', 64 * MIB)
    await growDevice(file, device, 256 * MIB)
    expect(await filesystems.grow(device, stage, 'ext4')).toEqual({ is: 'grown' })
    expect((await usage.ofFilesystem(stage)).totalBytes).toBeGreaterThan(200 * MIB)
  })

  const isNotRefused = skipReason(facts, ['ext4OnlineGrowthRefused'])
  it.skipIf(isNotRefused)(`REX-1 ext4 that may not grow mounted says so${because(isNotRefused)}`, async () => {
    const { filesystems, usage } = trial.host
    const { file, device, stage } = await staged('ext4', 64 * MIB)
    const { totalBytes } = await usage.ofFilesystem(stage)
    await growDevice(file, device, 256 * MIB)
    expect(await filesystems.grow(device, stage, 'ext4')).toMatchObject({
      is: 'needs unmount',
      because: expect.stringContaining('CAP_SYS_RESOURCE'),
    })
    expect((await usage.ofFilesystem(stage)).totalBytes).toBe(totalBytes)
  })

  it('SYS-6 a copy in an xfs pool shares its blocks, and writing to it leaves the original as it was', async () => {
    const { files } = trial.host
    const { stage: pool } = await staged('xfs')
    const [original, copy] = [join(pool, 'original'), join(pool, 'copy')]
    await writeFile(original, Buffer.alloc(8 * MIB, 7))
    expect(await files.copy(original, copy)).toEqual({ how: 'reflink' })
    await writeAt(copy, 'changed', 0)
    expect((await readFile(original)).equals(Buffer.alloc(8 * MIB, 7))).toBe(true)
  })

  it('SYS-6 a pool that is full refuses a copy and a reservation, and keeps what it has', async () => {
    const { files } = trial.host
    const { stage: pool } = await staged('ext4')
    const original = join(pool, 'original')
    await writeFile(original, Buffer.alloc(7 * MIB, 7))
    await expect(files.copy(original, join(pool, 'copy'))).rejects.toThrow(NoSpaceError)
    await expect(files.reserve(original, 14 * MIB)).rejects.toThrow(NoSpaceError)
    expect((await readdir(pool)).sort()).toEqual(['lost+found', 'original'])
    expect((await readFile(original)).equals(Buffer.alloc(7 * MIB, 7))).toBe(true)
  })

  async function reattach(file: string, device: string) {
    await trial.host.loops.detach(device, { file })
    return { device: await trial.host.loops.attach(file) }
  }
})

/** Of the beginning, where every mkfs writes. */
async function digestOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readStart(file, 8 * MIB))
    .digest('hex')
}

async function writeAt(path: string, text: string, position: number): Promise<void> {
  const handle = await open(path, 'r+')
  await handle.write(text, position)
  await handle.sync()
  await handle.close()
}
