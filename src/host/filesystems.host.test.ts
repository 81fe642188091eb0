import { createHash } from 'node:crypto'
import { open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { readStart } from './device-content.ts'
import { NoSpaceError, NotBlankError } from './errors.ts'
import { minimumBytes } from './filesystems.ts'
import { type HostFixture, startHostFixture } from './host.fixture.ts'
import { FILESYSTEM_TYPES, type FilesystemType } from './host.ts'

const MIB = 1024 * 1024
const facts = await probeThisMachine()
const hostSkip = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])
const skipNote = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

describe.skipIf(hostSkip)(`real file systems${skipNote(hostSkip)}`, () => {
  let fixture: HostFixture
  beforeEach(async () => {
    fixture = await startHostFixture()
  })
  afterEach(() => fixture.dispose())

  /** Creates a device with a mounted file system. */
  async function createMountedFilesystem(type: FilesystemType, bytes = minimumBytes(type), name = 'volume') {
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
    it('is created on a blank device of the minimum size', async () => {
      const { filesystems } = fixture.host
      const { device } = await fixture.device('volume', minimumBytes(type))
      expect(await filesystems.probe(device)).toEqual({ is: 'blank' })
      await filesystems.format(device, type, { keepReservation: true, label: 'stowage' })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type, label: 'stowage' })
      expect(await filesystems.sizeBytes(device, type)).toBe(minimumBytes(type))
    })

    it('keeps reserved blocks with keepReservation', async () => {
      const { files, loops, filesystems } = fixture.host
      const file = join(fixture.pool, 'reserved')
      await files.reserve(file, 320 * MIB)
      await filesystems.format(await loops.attach(file), type, { keepReservation: true })
      expect((await files.sizes(file))?.allocatedBytes).toBeGreaterThanOrEqual(320 * MIB)
    })

    it('does not overwrite a file system of any type', async () => {
      const { filesystems } = fixture.host
      for (const existingType of FILESYSTEM_TYPES) {
        const { file, device } = await fixture.device(`has-${existingType}`, minimumBytes('xfs'))
        await filesystems.format(device, existingType, { keepReservation: false })
        const digestBefore = await computeDigest(file)
        const formatRun = filesystems.format(device, type, { keepReservation: false })
        await expect(formatRun).rejects.toThrow(NotBlankError)
        await expect(formatRun).rejects.toThrow(`Cannot format ${device} with ${type}: it contains ${existingType}`)
        expect(await computeDigest(file)).toBe(digestBefore)
      }
    })

    it('does not overwrite unknown data', async () => {
      const { filesystems } = fixture.host
      const { file, device } = await fixture.device('raw', minimumBytes(type))
      await writeAt(file, 'precious', 500_000)
      const { device: reattachedDevice } = await reattach(file, device)
      await expect(filesystems.format(reattachedDevice, type, { keepReservation: false })).rejects.toThrow(
        'no known signature',
      )
      expect((await readFile(file)).subarray(500_000, 500_008).toString()).toBe('precious')
    })

    it('is created again after an interrupted format', async () => {
      const { filesystems } = fixture.host
      const { device } = await fixture.device('volume', minimumBytes(type))
      await filesystems.format(device, type, { keepReservation: false })
      await filesystems.format(device, type, { keepReservation: false, wasInterrupted: true })
      expect(await filesystems.probe(device)).toMatchObject({ is: 'filesystem', type })
    })

    it('does not overwrite another type after an interrupted format', async () => {
      const { filesystems } = fixture.host
      const otherType = type === 'xfs' ? 'ext4' : 'xfs'
      const { device } = await fixture.device('volume', minimumBytes('xfs'))
      await filesystems.format(device, otherType, { keepReservation: false })
      const formatRun = filesystems.format(device, type, { keepReservation: false, wasInterrupted: true })
      await expect(formatRun).rejects.toThrow(NotBlankError)
    })

    it('is thawed even if the work fails while it is frozen', async () => {
      const { filesystems } = fixture.host
      const { stage } = await createMountedFilesystem(type)
      const work = filesystems.whileFrozen(stage, async () => {
        throw new Error('the copy failed')
      })
      await expect(work).rejects.toThrow('the copy failed')
      await writeFile(join(stage, 'written after'), 'it would hang here if it were frozen')
      await filesystems.thaw(stage) // no effect, because it is not frozen
    })

    it('can be thawed after a killed driver left it frozen', async () => {
      const { filesystems } = fixture.host
      const { stage } = await createMountedFilesystem(type)
      await fixture.run('fsfreeze', ['--freeze', stage])
      await filesystems.thaw(stage)
      await writeFile(join(stage, 'written after'), 'data')
    })

    it('can be mounted at the same time as a copy with the same data', async () => {
      const { files, loops, filesystems, mounts } = fixture.host
      const { file, stage } = await createMountedFilesystem(type)
      const data = Buffer.alloc(2 * MIB, 'checked data')
      await writeFile(join(stage, 'data'), data)
      const copy = join(fixture.pool, 'copy')
      await filesystems.whileFrozen(stage, () => files.copy(file, copy))

      const device = await loops.attach(copy)
      await filesystems.assignNewUuid(device, type, join(fixture.pool, 'scratch'))
      await filesystems.assignNewUuid(device, type, join(fixture.pool, 'scratch')) // as after a crash
      const copyTarget = await fixture.directory('beside')
      await mounts.mount(device, copyTarget, type)
      expect((await readFile(join(copyTarget, 'data'))).equals(data)).toBe(true)
      expect(await readdir(fixture.pool)).not.toContain('scratch')
    })
  })

  it('are not frozen through a path that is not a mount point', async () => {
    const plainDir = await fixture.directory('plain')
    let hasRun = false
    const freezeRun = fixture.host.filesystems.whileFrozen(plainDir, async () => {
      hasRun = true
    })
    await expect(freezeRun).rejects.toThrow('nothing is mounted there')
    expect(hasRun).toBe(false)
  })

  it('cannot be probed on a missing device', async () => {
    await expect(fixture.host.filesystems.probe('/dev/loop-missing')).rejects.toThrow('ENOENT')
  })

  it('REX-1 xfs grows while it is mounted and written to, and needs a mount to grow', async () => {
    const { filesystems, usage } = fixture.host
    const { file, device, stage } = await createMountedFilesystem('xfs', 300 * MIB)
    const data = Buffer.alloc(8 * MIB, 'checked data')
    const writeRun = (async () => {
      for (let round = 0; round < 5; round++) await writeFile(join(stage, `data-${round}`), data)
    })()
    await growDevice(file, device, 600 * MIB)
    expect(await filesystems.grow(device, stage, 'xfs')).toEqual({ is: 'grown' })
    await writeRun
    expect((await usage.measureFilesystem(stage)).totalBytes).toBeGreaterThan(500 * MIB)
    for (let round = 0; round < 5; round++)
      expect((await readFile(join(stage, `data-${round}`))).equals(data)).toBe(true)
    expect(await filesystems.grow(device, stage, 'xfs'), 'again').toEqual({ is: 'grown' })

    await fixture.host.mounts.unmount(stage)
    expect(await filesystems.sizeBytes(device, 'xfs')).toBe(600 * MIB)
    expect(await filesystems.grow(device, undefined, 'xfs')).toMatchObject({ is: 'needs mount' })
  })

  it('REX-1 ext4 grows while it is not mounted', async () => {
    const { filesystems, mounts } = fixture.host
    const { file, device, stage } = await createMountedFilesystem('ext4', 64 * MIB)
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

  const onlineGrowthSkip = skipReason(facts, ['ext4OnlineGrowth'])
  it.skipIf(onlineGrowthSkip)(`REX-1 ext4 grows while it is mounted${skipNote(onlineGrowthSkip)}`, async () => {
    const { filesystems, usage } = fixture.host
    const { file, device, stage } = await createMountedFilesystem('ext4', 64 * MIB)
    await growDevice(file, device, 256 * MIB)
    expect(await filesystems.grow(device, stage, 'ext4')).toEqual({ is: 'grown' })
    expect((await usage.measureFilesystem(stage)).totalBytes).toBeGreaterThan(200 * MIB)
  })

  const offlineGrowthSkip = skipReason(facts, ['ext4OnlineGrowthRefused'])
  it.skipIf(offlineGrowthSkip)(
    `REX-1 ext4 without CAP_SYS_RESOURCE needs an unmount to grow${skipNote(offlineGrowthSkip)}`,
    async () => {
      const { filesystems, usage } = fixture.host
      const { file, device, stage } = await createMountedFilesystem('ext4', 64 * MIB)
      const { totalBytes } = await usage.measureFilesystem(stage)
      await growDevice(file, device, 256 * MIB)
      expect(await filesystems.grow(device, stage, 'ext4')).toMatchObject({
        is: 'needs unmount',
        message: expect.stringContaining('CAP_SYS_RESOURCE'),
      })
      expect((await usage.measureFilesystem(stage)).totalBytes).toBe(totalBytes)
    },
  )

  it('copy files on xfs as reflinks that are independent of the original', async () => {
    const { files } = fixture.host
    const { stage: pool } = await createMountedFilesystem('xfs')
    const [original, copy] = [join(pool, 'original'), join(pool, 'copy')]
    await writeFile(original, Buffer.alloc(8 * MIB, 7))
    expect(await files.copy(original, copy)).toEqual({ method: 'reflink' })
    await writeAt(copy, 'changed', 0)
    expect((await readFile(original)).equals(Buffer.alloc(8 * MIB, 7))).toBe(true)
  })

  it('keep existing files if copies and reservations fail because they are full', async () => {
    const { files } = fixture.host
    const { stage: pool } = await createMountedFilesystem('ext4')
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

/** Returns a digest of the start of the file. */
async function computeDigest(file: string): Promise<string> {
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
