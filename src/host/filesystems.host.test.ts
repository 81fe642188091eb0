import { createHash } from 'node:crypto'
import { open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { readStart } from './content.ts'
import { NoSpaceError, NotBlankError } from './errors.ts'
import { minimumBytes } from './filesystems.ts'
import { type HostFixture, startHostFixture } from './host.fixture.ts'
import { FILESYSTEM_TYPES, type FilesystemType } from './host.ts'

const MIB = 1024 * 1024
const facts = await probeThisMachine()
const missing = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])
const because = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

describe.skipIf(missing)(`real file systems${because(missing)}`, () => {
  let fixture: HostFixture
  beforeEach(async () => {
    fixture = await startHostFixture()
  })
  afterEach(() => fixture.dispose())

  /** A file system on its own device, mounted. */
  async function staged(type: FilesystemType, bytes = minimumBytes(type), name = 'volume') {
    const { file, device } = await fixture.device(name, bytes)
    await fixture.host.filesystems.format(device, type, { keepReservation: false })
    const stage = await fixture.directory(`${name}-stage`)
    await fixture.host.mounts.mount(device, stage, type)
    return { file, device, stage }
  }

  async function growDevice(file: string, device: string, bytes: number): Promise<void> {
    await fixture.host.files.extend(file, bytes)
    await fixture.host.loops.refreshSize(device)
  }

  describe.each(FILESYSTEM_TYPES)('%s', (type) => {
    it('SYS-6 is created on a blank device of the minimum size', async () => {
      const { filesystems } = fixture.host
      const { device } = await fixture.device('volume', minimumBytes(type))
      expect(await filesystems.probe(device)).toEqual({ is: 'blank' })
      await filesystems.format(device, type, { keepReservation: true, label: 'stowage' })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type, label: 'stowage' })
      expect(await filesystems.sizeBytes(device, type)).toBe(minimumBytes(type))
    })

    it('SYS-6 keeps reserved blocks with keepReservation', async () => {
      const { files, loops, filesystems } = fixture.host
      const file = join(fixture.pool, 'reserved')
      await files.reserve(file, 320 * MIB)
      await filesystems.format(await loops.attach(file), type, { keepReservation: true })
      expect((await files.sizes(file))?.allocatedBytes).toBeGreaterThanOrEqual(320 * MIB)
    })

    it('SYS-6 does not overwrite a file system of any type', async () => {
      const { filesystems } = fixture.host
      for (const there of FILESYSTEM_TYPES) {
        const { file, device } = await fixture.device(`has-${there}`, minimumBytes('xfs'))
        await filesystems.format(device, there, { keepReservation: false })
        const before = await digestOf(file)
        const again = filesystems.format(device, type, { keepReservation: false })
        await expect(again).rejects.toThrow(NotBlankError)
        await expect(again).rejects.toThrow(`Cannot format ${device} with ${type}: it contains ${there}`)
        expect(await digestOf(file)).toBe(before)
      }
    })

    it('SYS-6 does not overwrite unknown data', async () => {
      const { filesystems } = fixture.host
      const { file, device } = await fixture.device('raw', minimumBytes(type))
      await writeAt(file, 'precious', 500_000)
      const { device: fresh } = await reattach(file, device)
      await expect(filesystems.format(fresh, type, { keepReservation: false })).rejects.toThrow('no known signature')
      expect((await readFile(file)).subarray(500_000, 500_008).toString()).toBe('precious')
    })

    it('SYS-6 is created again after an interrupted format', async () => {
      const { filesystems } = fixture.host
      const { device } = await fixture.device('volume', minimumBytes(type))
      await filesystems.format(device, type, { keepReservation: false })
      await filesystems.format(device, type, { keepReservation: false, wasInterrupted: true })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type })
    })

    it('SYS-6 does not overwrite another type after an interrupted format', async () => {
      const { filesystems } = fixture.host
      const other = type === 'xfs' ? 'ext4' : 'xfs'
      const { device } = await fixture.device('volume', minimumBytes('xfs'))
      await filesystems.format(device, other, { keepReservation: false })
      const formatting = filesystems.format(device, type, { keepReservation: false, wasInterrupted: true })
      await expect(formatting).rejects.toThrow(NotBlankError)
    })

    it('SYS-6 is thawed even if the work on the frozen file system fails', async () => {
      const { filesystems } = fixture.host
      const { stage } = await staged(type)
      const failed = filesystems.whileFrozen(stage, async () => {
        throw new Error('the copy failed')
      })
      await expect(failed).rejects.toThrow('the copy failed')
      await writeFile(join(stage, 'written after'), 'it would hang here if it were frozen')
      await filesystems.thaw(stage) // not frozen: nothing to do
    })

    it('SYS-6 that a killed driver left frozen can be thawed', async () => {
      const { filesystems } = fixture.host
      const { stage } = await staged(type)
      await fixture.run('fsfreeze', ['--freeze', stage])
      await filesystems.thaw(stage)
      await writeFile(join(stage, 'written after'), 'data')
    })

    it('SYS-6 can be mounted at the same time as its copy, which has the same data', async () => {
      const { files, loops, filesystems, mounts } = fixture.host
      const { file, stage } = await staged(type)
      const data = Buffer.alloc(2 * MIB, 'checked data')
      await writeFile(join(stage, 'data'), data)
      const copy = join(fixture.pool, 'copy')
      await filesystems.whileFrozen(stage, () => files.copy(file, copy))

      const device = await loops.attach(copy)
      await filesystems.newUuid(device, type, join(fixture.pool, 'scratch'))
      await filesystems.newUuid(device, type, join(fixture.pool, 'scratch')) // as after a crash
      const beside = await fixture.directory('beside')
      await mounts.mount(device, beside, type)
      expect((await readFile(join(beside, 'data'))).equals(data)).toBe(true)
      expect(await readdir(fixture.pool)).not.toContain('scratch')
    })
  })

  it('SYS-6 are not frozen through a path that is not a mount point', async () => {
    const plain = await fixture.directory('plain')
    let hasRun = false
    const frozen = fixture.host.filesystems.whileFrozen(plain, async () => {
      hasRun = true
    })
    await expect(frozen).rejects.toThrow('nothing is mounted there')
    expect(hasRun).toBe(false)
  })

  it('SYS-6 on a missing device are an error, not a blank device', async () => {
    await expect(fixture.host.filesystems.probe('/dev/loop-of-no-one')).rejects.toThrow('ENOENT')
  })

  it('REX-1 xfs grows while it is mounted and written to', async () => {
    const { filesystems, usage } = fixture.host
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

    await fixture.host.mounts.unmount(stage)
    expect(await filesystems.sizeBytes(device, 'xfs')).toBe(600 * MIB)
    expect(await filesystems.grow(device, undefined, 'xfs')).toMatchObject({ is: 'needs mount' })
  })

  it('REX-1 ext4 grows while it is not mounted', async () => {
    const { filesystems, mounts } = fixture.host
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
    const { filesystems, usage } = fixture.host
    const { file, device, stage } = await staged('ext4', 64 * MIB)
    await growDevice(file, device, 256 * MIB)
    expect(await filesystems.grow(device, stage, 'ext4')).toEqual({ is: 'grown' })
    expect((await usage.ofFilesystem(stage)).totalBytes).toBeGreaterThan(200 * MIB)
  })

  const isNotRefused = skipReason(facts, ['ext4OnlineGrowthRefused'])
  it.skipIf(isNotRefused)(
    `REX-1 ext4 without CAP_SYS_RESOURCE needs an unmount to grow${because(isNotRefused)}`,
    async () => {
      const { filesystems, usage } = fixture.host
      const { file, device, stage } = await staged('ext4', 64 * MIB)
      const { totalBytes } = await usage.ofFilesystem(stage)
      await growDevice(file, device, 256 * MIB)
      expect(await filesystems.grow(device, stage, 'ext4')).toMatchObject({
        is: 'needs unmount',
        because: expect.stringContaining('CAP_SYS_RESOURCE'),
      })
      expect((await usage.ofFilesystem(stage)).totalBytes).toBe(totalBytes)
    },
  )

  it('SYS-6 on xfs copy files as reflinks that are independent of the original', async () => {
    const { files } = fixture.host
    const { stage: pool } = await staged('xfs')
    const [original, copy] = [join(pool, 'original'), join(pool, 'copy')]
    await writeFile(original, Buffer.alloc(8 * MIB, 7))
    expect(await files.copy(original, copy)).toEqual({ how: 'reflink' })
    await writeAt(copy, 'changed', 0)
    expect((await readFile(original)).equals(Buffer.alloc(8 * MIB, 7))).toBe(true)
  })

  it('SYS-6 that are full fail copies and reservations, and keep their files', async () => {
    const { files } = fixture.host
    const { stage: pool } = await staged('ext4')
    const original = join(pool, 'original')
    await writeFile(original, Buffer.alloc(7 * MIB, 7))
    await expect(files.copy(original, join(pool, 'copy'))).rejects.toThrow(NoSpaceError)
    await expect(files.reserve(original, 14 * MIB)).rejects.toThrow(NoSpaceError)
    expect((await readdir(pool)).sort()).toEqual(['lost+found', 'original'])
    expect((await readFile(original)).equals(Buffer.alloc(7 * MIB, 7))).toBe(true)
  })

  async function reattach(file: string, device: string) {
    await fixture.host.loops.detach(device, { file })
    return { device: await fixture.host.loops.attach(file) }
  }
})

/** Digest of the start, where every mkfs writes. */
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
